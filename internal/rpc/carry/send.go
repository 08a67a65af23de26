package carry

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// send gives a call its id and sends it. It returns nil if the connection has ended.
func (cs *Calls) send(m *pb.Call) *call {
	cs.mu.Lock()
	if cs.limits.Calls == 0 {
		cs.unreserve(len(m.GetPayload()))
		cs.mu.Unlock()
		return nil
	}
	cs.last++
	cs.queued += uint64(size(m))
	c := cs.newCall()
	c.id, c.bytes, c.end = cs.last, len(m.GetPayload()), cs.queued
	m.Id = c.id
	if m.Early {
		c.part = make(chan struct{}, 1)
	}
	cs.calls[c.id] = c
	cs.waiting.calls = append(cs.waiting.calls, m)
	cs.put()
	return c
}

// cancel notifies the plugin that the caller no longer waits. The call keeps its place until
// it is answered.
func (cs *Calls) cancel(id uint64) {
	cs.mu.Lock()
	if cs.calls[id] == nil {
		cs.mu.Unlock()
		return
	}
	cs.queued += cancelSize
	cs.waiting.cancels = append(cs.waiting.cancels, id)
	cs.put()
}

// cancelSize bounds the size of a cancellation in a message, in bytes.
const cancelSize = 12

// put ensures that the waiting calls and cancels are sent. The caller holds mu; put unlocks it.
//
// A caller normally sends its own call: waking another goroutine takes longer than sending.
// But a plugin that does not read must not block a caller whose context ends. So a caller
// sends only while the socket is certain to accept the message. Beyond that, and while
// another caller sends, sendRest sends. An answer proves that the plugin has read everything
// up to its call.
func (cs *Calls) put() {
	if cs.sending {
		cs.mu.Unlock()
		return
	}
	cs.sending = true
	if cs.queued-cs.arrived > direct {
		cs.mu.Unlock()
		cs.rest <- struct{}{} // never blocks: sending allows one at a time
		return
	}
	m, _ := cs.batch()
	cs.mu.Unlock()
	_ = cs.framed.send(m) // read reports a broken connection
	cs.mu.Lock()
	more := len(cs.waiting.calls)+len(cs.waiting.cancels) > 0
	cs.sending = more
	cs.mu.Unlock()
	if more {
		cs.rest <- struct{}{}
	}
}

// direct bounds the bytes in transit to the plugin with which a caller still sends its own
// call. A socket accepts 200 KiB before it blocks a sender, and a small message takes more
// than a KiB of that. So direct allows 80 of the smallest calls.
const direct = 8 << 10

// sendRest sends what callers may not send themselves: see put.
func (cs *Calls) sendRest(ctx context.Context) {
	for {
		select {
		case <-cs.rest:
		case <-ctx.Done():
			return
		}
		for {
			cs.mu.Lock()
			m, any := cs.batch()
			cs.sending = any
			cs.mu.Unlock()
			if !any {
				break
			}
			if cs.framed.send(m) != nil {
				return // read reports the reason; what waits is never sent
			}
		}
	}
}

// batch takes what fits into one message, which is valid until the next call. The caller
// holds mu.
func (cs *Calls) batch() (m *pb.CarryRequest, any bool) {
	w := &cs.waiting
	room := cs.limits.Message
	cancels := min(len(w.cancels), room/2/cancelSize)
	room -= cancels * cancelSize
	n := 0
	for n < len(w.calls) && (n == 0 || size(w.calls[n]) <= room) {
		room -= size(w.calls[n])
		n++
	}
	m = &cs.message
	m.Calls = append(m.Calls[:0], w.calls[:n]...)
	m.Cancels = append(m.Cancels[:0], w.cancels[:cancels]...)
	w.calls, w.cancels = without(w.calls, n), without(w.cancels, cancels)
	return m, n+cancels > 0
}

// without removes the first n elements of a queue. It keeps the capacity for reuse, unless
// that is large.
func without[T any](waiting []T, n int) []T {
	left := copy(waiting, waiting[n:])
	clear(waiting[left:])
	if left == 0 && cap(waiting) > maxIdle {
		return nil
	}
	return waiting[:left]
}

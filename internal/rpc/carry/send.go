package carry

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// send gives a call its id and sends it. It returns nil if the connection has ended.
func (cs *Calls) send(m *pb.Call) *call {
	cs.mu.Lock()
	if cs.limits.Calls == 0 {
		cs.giveBack(len(m.GetPayload()))
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

// cancel tells the plugin that nobody waits for the call. The call keeps its place
// until it is answered.
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

// cancelSize is what a cancellation takes of a message, at most.
const cancelSize = 12

// put sees to it that what waits is sent. It needs mu, and gives it back.
//
// A call is best sent by its caller: to wake another goroutine for that takes longer
// than the sending. But a caller whose context ends must not be kept by a plugin that
// does not read. So it sends only while the socket is certain to take the message. After
// that, and while another one sends, sendRest does it. An answer tells that the plugin
// has read all up to its call.
func (cs *Calls) put() {
	if cs.sending {
		cs.mu.Unlock()
		return
	}
	cs.sending = true
	if cs.queued-cs.arrived > direct {
		cs.mu.Unlock()
		cs.rest <- struct{}{} // never waits: there is one duty
		return
	}
	m, _ := cs.batch()
	cs.mu.Unlock()
	_ = cs.framed.send(m) // read tells of a broken connection
	cs.mu.Lock()
	more := len(cs.waiting.calls)+len(cs.waiting.cancels) > 0
	cs.sending = more
	cs.mu.Unlock()
	if more {
		cs.rest <- struct{}{}
	}
}

// direct is how many bytes may be on their way to the plugin when a call is sent in its
// caller's goroutine. A socket takes 200 KiB before it makes a sender wait, of which a
// small message takes more than a KiB. That is 80 calls of the smallest size.
const direct = 8 << 10

// sendRest sends when callers may not.
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
				return // read tells why. What waits is never sent.
			}
		}
	}
}

// batch takes what fits into one message, which is good until the next one. It needs
// mu.
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

// without takes the first n elements out of what waits. Room that was needed once is
// kept, if it is not much.
func without[T any](waiting []T, n int) []T {
	left := copy(waiting, waiting[n:])
	clear(waiting[left:])
	if left == 0 && cap(waiting) > maxIdle {
		return nil
	}
	return waiting[:left]
}

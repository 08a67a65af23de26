package carry

import (
	"context"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// send gives a call its id and sends it. It returns nil if the stream has ended.
func (s *Stream) send(m *pb.Call) *call {
	s.mu.Lock()
	if s.limits.Calls == 0 {
		s.giveBack(len(m.GetPayload()))
		s.mu.Unlock()
		return nil
	}
	s.last++
	s.queued += uint64(size(m))
	c := s.newCall()
	c.id, c.bytes, c.end = s.last, len(m.GetPayload()), s.queued
	m.Id = c.id
	if m.Early {
		c.part = make(chan struct{}, 1)
	}
	s.calls[c.id] = c
	s.waiting.calls = append(s.waiting.calls, m)
	s.put()
	return c
}

// cancel tells the plugin that nobody waits for the call. The call keeps its place
// until it is answered.
func (s *Stream) cancel(id uint64) {
	s.mu.Lock()
	if s.calls[id] == nil {
		s.mu.Unlock()
		return
	}
	s.queued += cancelSize
	s.waiting.cancels = append(s.waiting.cancels, id)
	s.put()
}

// cancelSize is what a cancellation takes of a message, at most.
const cancelSize = 12

// put sees to it that what waits is sent. It needs mu, and gives it back.
//
// A call is best sent by its caller: to wake another goroutine for that takes longer
// than the sending. But a caller whose context ends must not be kept by a plugin that
// does not read. So it sends only while the link is certain to take the message. After
// that, and while another one sends, sendRest does it. An answer tells that the plugin
// has read all up to its call.
func (s *Stream) put() {
	if s.sending {
		s.mu.Unlock()
		return
	}
	s.sending = true
	if s.queued-s.arrived > s.link.direct() {
		s.mu.Unlock()
		s.rest <- struct{}{} // never waits: there is one duty
		return
	}
	m, _ := s.batch()
	s.mu.Unlock()
	_ = s.link.send(m) // read tells of a broken stream
	s.mu.Lock()
	more := len(s.waiting.calls)+len(s.waiting.cancels) > 0
	s.sending = more
	s.mu.Unlock()
	if more {
		s.rest <- struct{}{}
	}
}

// sendRest sends when callers may not.
func (s *Stream) sendRest(ctx context.Context) {
	for {
		select {
		case <-s.rest:
		case <-ctx.Done():
			return
		}
		for {
			s.mu.Lock()
			m, any := s.batch()
			s.sending = any
			s.mu.Unlock()
			if !any {
				break
			}
			if s.link.send(m) != nil {
				return // read tells why. What waits is never sent.
			}
		}
	}
}

// batch takes what fits into one message, which is good until the next one. It needs
// mu.
func (s *Stream) batch() (m *pb.CarryRequest, any bool) {
	w := &s.waiting
	room := s.limits.Message
	cancels := min(len(w.cancels), room/2/cancelSize)
	room -= cancels * cancelSize
	n := 0
	for n < len(w.calls) && (n == 0 || size(w.calls[n]) <= room) {
		room -= size(w.calls[n])
		n++
	}
	m = &s.message
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

package carry

import "sync"

// A Sender sends the messages of a queue, one at a time. The goroutine that puts something into
// the queue can send it: waking another goroutine takes longer. What is put while a message is
// sent waits, and can share the next one. After an error nothing more is sent.
//
// The owner sets the fields before the first Flush, and holds Mu in each call.
type Sender[M any] struct {
	Mu   *sync.Mutex                      // the queue's
	Next func() (m M, ok bool)            // takes a message from the queue; called with Mu
	Send func(M) error                    // called without Mu
	Sent func(m M, err error) (more bool) // called with Mu; reports whether more waits
	Rest func(send func())                // runs send in another goroutine; called with Mu

	sending, failed bool
}

// Flush sends what is in the queue, unless another goroutine does. It sends up to own messages itself,
// during which Mu is not held. Rest sends the others.
func (s *Sender[M]) Flush(own int) {
	if s.sending || s.failed {
		return
	}
	s.sending = true
	for ; own > 0; own-- {
		if !s.one() {
			return
		}
	}
	s.Rest(s.sendRest)
}

func (s *Sender[M]) sendRest() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for s.one() {
	}
}

// one sends a message, and reports whether the caller must send another one.
func (s *Sender[M]) one() bool {
	m, ok := s.Next()
	if !ok {
		s.sending = false
		return false
	}
	s.Mu.Unlock()
	err := s.Send(m)
	s.Mu.Lock()
	s.failed = err != nil
	s.sending = s.Sent(m, err) && !s.failed
	return s.sending
}

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// end makes the session lost, once, and shuts it down in the background. It does not block.
func (s *Session) end(reason error) {
	s.endOnce.Do(func() {
		s.mu.Lock()
		s.cancel(reason)
		s.lease.Stop() // after cancel: a stopped lease without a reason would look like a session without a deadline
		s.mu.Unlock()
		if errors.Is(reason, errLetGo) {
			s.wire.Spare(true) // before any call can close the session
			s.wire.Shut()
		} else if !errors.Is(reason, recipes.ErrClosed) {
			s.log.Warn("session lost", "session", fmt.Sprintf("%#x", s.wire.ID()), "reason", reason)
			s.wire.Shut()
		}
		s.events.Close(recipes.Event{State: recipes.Lost, Reason: reason})
		go s.takeDown(reason)
	})
}

// tryToClose sends closeSession on the current connection and does not wait for the answer. If
// requests still reach the server although answers do not arrive, the next contender need not
// wait until the session expires.
func (s *Session) tryToClose() {
	c := s.wire.Current()
	if c == nil {
		return
	}
	written := make(chan struct{})
	s.calls.Go(func() {
		defer close(written)
		c.SendClose()
	})
	patience := time.NewTimer(time.Second) // a socket accepts the bytes at once, or not at all
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
	}
}

// takeDown waits for the session's background work and stops go-zookeeper. If the application
// has closed the session, takeDown also closes it at the server.
func (s *Session) takeDown(reason error) {
	defer close(s.shutdown)
	defer s.tellEnd()
	s.mu.Lock()
	begun, id := s.wire.Begun(), s.id
	s.mu.Unlock()
	if !errors.Is(reason, recipes.ErrClosed) && !errors.Is(reason, recipes.ErrExpired) {
		s.tryToClose()
	}
	defer context.AfterFunc(s.patience, s.wire.Drop)() // a request that cannot be written ends with its connection
	s.work.Wait()
	if !begun {
		s.wire.Shut()
		return
	}
	limit, cancel := context.WithDeadline(s.patience, s.LastContact().Add(s.Timeout()))
	defer cancel()
	wanted := errors.Is(reason, recipes.ErrClosed) && id != 0
	// zk.Conn.Close sends closeSession and waits a second for an answer that may never come.
	// Here the answer on the wire counts.
	now, disconnected, _ := s.status.Get()
	asked := wanted && now.connected
	if asked {
		s.calls.Go(s.wire.Close)
		select {
		case <-s.wire.Closed():
		case <-disconnected:
		case <-limit.Done():
		}
	}
	s.wire.Shut()
	s.wire.Drop()
	if !asked { // a second Close would wait for the first on a mutex, where virtual time does not advance
		s.calls.Go(s.wire.Close)
	}
	s.wire.Wait()
	if !errors.Is(reason, errLetGo) { // after LetGo, the next process is waiting for the session
		s.awaitCalls(s.patience)
	}
	switch {
	case Happened(s.wire.Closed()), id == 0, errors.Is(reason, recipes.ErrExpired), errors.Is(reason, errLetGo):
	case wanted && s.wire.CloseSession(limit, id) == nil:
	default:
		s.closeErr = fmt.Errorf("close session: %w: the server has not confirmed it; it deletes the session's znodes after %v at the latest (%w)",
			recipes.ErrUnknownOutcome, s.Timeout(), reason)
	}
}

func (s *Session) tellEnd() {
	s.mu.Lock()
	f := s.onEnd
	s.over = true
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// awaitCalls waits for calls of go-zookeeper that have not returned: nothing, or a Close that
// waits out its second. It stops waiting when ctx is done.
func (s *Session) awaitCalls(ctx context.Context) {
	returned := make(chan struct{})
	go func() { s.calls.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-ctx.Done():
	}
}

// closeGrace is how long a connected session waits for the confirmation of its Close, even if the
// context has ended. Many programs close their sessions with the context that a signal has ended.
// Without the wait, the server would keep their locks until the session expires.
const closeGrace = 100 * time.Millisecond

func (s *Session) giveUpSoon() {
	if now, _, _ := s.status.Get(); now.connected {
		grace := time.NewTimer(closeGrace)
		defer grace.Stop()
		select {
		case <-s.shutdown:
		case <-grace.C:
		}
	}
	s.giveUp()
}

func (s *Session) Close(ctx context.Context) error {
	s.end(recipes.ErrClosed)
	first := false
	s.closing.Do(func() { first = true })
	if first {
		defer context.AfterFunc(ctx, s.giveUpSoon)()
		<-s.shutdown
		return s.closeErr
	}
	if Happened(s.shutdown) { // checked first, because ctx may be done too
		return s.closeErr
	}
	select {
	case <-s.shutdown:
		return s.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close session: another call is closing it: %w: %w", recipes.ErrUnknownOutcome, ctx.Err())
	}
}

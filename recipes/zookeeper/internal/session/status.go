package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// status is what the connection is known to be.
type status struct {
	connected   bool
	connections int // established so far
}

// callback receives go-zookeeper's events on its own goroutines and must not
// block.
func (s *Session) callback(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		s.established()
	case zk.StateDisconnected:
		s.suspended()
	case zk.StateExpired:
		s.end(recipes.ErrExpired)
	}
}

// established runs when a connection has been accepted into a session.
func (s *Session) established() {
	id := s.wire.sessionID.Load()
	s.mu.Lock()
	switch s.id {
	case 0:
		s.id = id
		s.deadline = time.AfterFunc(s.left(), s.checkDeadline)
	case id:
		s.wire.counters.reconnects.Add(1)
		s.deadline.Reset(s.left()) // the timeout may be another one
	default:
		s.mu.Unlock()
		s.dialer.drop() // before anything is sent in it
		s.end(fmt.Errorf("%w: the server answered with another session", recipes.ErrExpired))
		return
	}
	s.mu.Unlock()
	if !s.wire.reauth.Load() {
		s.connected()
	}
}

// authReplied runs when the server has answered the credentials that a
// connection after the first gives again.
func (s *Session) authReplied(accepted bool) {
	if accepted {
		s.connected()
	} else {
		s.end(recipes.ErrAuthFailed)
	}
}

// connected runs when a connection can be used.
func (s *Session) connected() {
	s.dialer.established()
	// The state first: whoever the status wakes, Open among them, finds it.
	s.events.Set(recipes.Event{State: recipes.Connected})
	was, _, _ := s.status.Get()
	s.status.Set(status{connected: true, connections: was.connections + 1})
}

// suspended runs when a connection has ended.
func (s *Session) suspended() {
	s.watches.disconnected()
	was, _, _ := s.status.Get()
	if !was.connected {
		return
	}
	s.status.Set(status{connections: was.connections})
	s.events.Set(recipes.Event{State: recipes.Suspended})
}

// trust is how long after a contact the session trusts that it lives. That is its
// timeout, less a twentieth for clocks that run at different rates and timers that
// fire late. It is 0 before there is a session.
//
// A server on which the session is resumed may grant another timeout than the one
// before; then that counts.
func (s *Session) trust() time.Duration {
	timeout := s.Timeout()
	return timeout - timeout/20
}

// left is how long the session may still be relied on without another contact.
func (s *Session) left() time.Duration {
	return time.Until(s.Contact().Add(s.trust()))
}

// checkDeadline ends the session if there was no contact for its timeout. It also
// serves as the watchdog of a connection that go-zookeeper has wedged.
func (s *Session) checkDeadline() {
	s.mu.Lock()
	if s.deadline == nil { // the handshake is being answered
		s.mu.Unlock()
		return
	}
	left := s.left()
	if left > 0 && !s.over {
		s.deadline.Reset(left)
	}
	s.mu.Unlock()
	if left > 0 {
		return
	}
	silent := func(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
	err := fmt.Errorf("%w: no server has answered for %v", recipes.ErrDeadline, silent(s.LastContact()))
	if s.holding() {
		err = fmt.Errorf("%w; the leader is not known to have heard of the session for %v", err, silent(s.KnownContact()))
	}
	s.end(err)
}

// Connected waits until the session is connected, and returns a channel that is
// closed when the connection is lost. It fails when ctx ends (ErrUnavailable)
// or the session is lost.
func (s *Session) Connected(ctx context.Context) (<-chan struct{}, error) {
	return s.connectedAfter(ctx, 0)
}

// connectedAfter is Connected for a connection later than the n-th.
func (s *Session) connectedAfter(ctx context.Context, n int) (<-chan struct{}, error) {
	for {
		if err := s.Err(); err != nil {
			return nil, err
		}
		now, changed, _ := s.status.Get()
		if now.connected && now.connections > n {
			return changed, nil
		}
		select {
		case <-changed:
		case <-s.Done():
		case <-ctx.Done():
			if err := s.Err(); err != nil {
				return nil, err // ctx is the session's own, or ended with it
			}
			return nil, s.unavailable("waiting for a connection", ctx)
		}
	}
}

package session

import (
	"context"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// status is the state of the connection.
type status struct {
	connected   bool
	connections int // established so far
}

// accepted runs when a server has accepted a connection into a session. It reports whether that
// is this session.
func (s *Session) accepted(id int64) bool {
	s.mu.Lock()
	before := s.id
	if before == 0 {
		s.id = id
		if s.ctx.Err() == nil { // otherwise end has already tried to stop the lease
			s.lease.Start(s.end)
		}
	}
	s.mu.Unlock()
	switch before {
	case 0:
	case id:
		s.wire.Counters.Reconnects.Add(1)
		s.lease.Reset() // the new timeout may be smaller
	default:
		s.wire.Drop() // before a request is sent on it
		s.end(fmt.Errorf("%w: the server answered with another session", recipes.ErrExpired))
		return false
	}
	return true
}

// connected runs when a connection can be used.
func (s *Session) connected() {
	// Set the event first: Open, and other waiters that the status wakes, then find the new
	// state.
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

// Connected waits until the session is connected, and returns a channel that closes when the
// connection ends. It fails when ctx is done (ErrUnavailable) or the session is lost.
func (s *Session) Connected(ctx context.Context) (<-chan struct{}, error) {
	_, lost, err := s.connectedAfter(ctx, 0)
	return lost, err
}

// connectedAfter waits for a connection later than the n-th, and returns its number.
func (s *Session) connectedAfter(ctx context.Context, n int) (connection int, lost <-chan struct{}, err error) {
	for {
		if err := s.Err(); err != nil {
			return 0, nil, err
		}
		now, changed, _ := s.status.Get()
		if now.connected && now.connections > n {
			return now.connections, changed, nil
		}
		select {
		case <-changed:
		case <-s.Done():
		case <-ctx.Done():
			if err := s.Err(); err != nil {
				return 0, nil, err // ctx may be the session's, or have ended with it
			}
			return 0, nil, s.unavailable("waiting for a connection", ctx)
		}
	}
}

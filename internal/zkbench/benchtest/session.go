package benchtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// session is a recipes.Session.
type session struct {
	recipes.Session // nil, for recipes that no benchmark uses

	server  *Server
	id      int64
	timeout time.Duration
	lost    chan struct{}

	mu       sync.Mutex
	closed   bool
	counters recipes.Stats
}

// errNotHere is for what a benchmark does not use.
func errNotHere(what string) error {
	return fmt.Errorf("%w: benchtest has no %s", recipes.ErrInternal, what)
}

func (s *session) ID() int64              { return s.id }
func (s *session) Timeout() time.Duration { return s.timeout }
func (s *session) Done() <-chan struct{}  { return s.lost }

func (s *session) State() recipes.State {
	if s.Err() != nil {
		return recipes.Lost
	}
	return recipes.Connected
}

func (s *session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return recipes.ErrClosed
	}
	return nil
}

// Events gives the present state only.
func (s *session) Events(context.Context) <-chan recipes.Event {
	events := make(chan recipes.Event, 1)
	events <- recipes.Event{State: s.State(), Reason: s.Err()}
	close(events)
	return events
}

func (s *session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	p, err := s.place(path, cfg.Strategy, cfg.Joined)
	return lock{p}, err
}

func (s *session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	p, err := s.place(path, cfg.Strategy, cfg.Joined)
	return election{p}, err
}

func (s *session) place(path string, strategy recipes.Strategy, joined func(recipes.Place)) (place, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return place{}, err
	}
	strategy, err := recipes.ParseStrategy(string(strategy))
	return place{s, path, strategy, joined}, err
}

func (s *session) Stats(context.Context) (recipes.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters, nil
}

// Close ends the session, wakes what waits in it and gives back what it holds.
func (s *session) Close(context.Context) error {
	if s.end() {
		s.server.forget(s)
	}
	return nil
}

// end reports whether this call was the one that ended the session.
func (s *session) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	close(s.lost)
	return true
}

func (s *session) count(change func(*recipes.Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counters)
}

// countRead counts the read of one znode: 80 bytes of Stat and 16 of header.
func (s *session) countRead() {
	s.count(func(n *recipes.Stats) { n.Reads++; n.ResponseBytes += 96 })
}

// countListing counts the read of a line: about 56 bytes a name.
func (s *session) countListing(names int) {
	s.count(func(n *recipes.Stats) { n.Reads++; n.ResponseBytes += 96 + 56*int64(names) })
}

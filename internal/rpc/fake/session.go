package fake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Session is a session in a World.
type Session struct {
	w       *World
	id      int64
	timeout time.Duration
	events  *feed.Feed[recipes.Event]
	lost    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	contact time.Time // zero: now
}

func newSession(w *World, id int64, timeout time.Duration) *Session {
	return &Session{
		w: w, id: id, timeout: timeout, lost: make(chan struct{}),
		events: feed.New(recipes.Event{State: recipes.Connected}),
	}
}

// Suspend and Resume change the state as a broken and a new connection do.
func (s *Session) Suspend() {
	s.setContact(time.Now())
	s.events.Set(recipes.Event{State: recipes.Suspended})
}
func (s *Session) Resume() {
	s.setContact(time.Time{})
	s.events.Set(recipes.Event{State: recipes.Connected})
}

func (s *Session) setContact(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contact = t
}

// LastContact is now, unless the session is suspended.
func (s *Session) LastContact() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contact.IsZero() {
		return time.Now()
	}
	return s.contact
}

// Lose ends the session for a reason that matches recipes.ErrSessionLost.
func (s *Session) Lose(reason error) {
	s.once.Do(func() {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		for _, n := range append([]*node(nil), s.w.nodes...) {
			if n.owner == s {
				s.w.remove(n, fmt.Errorf("%w: %w", recipes.ErrNotHeld, reason))
			}
		}
		s.events.Close(recipes.Event{State: recipes.Lost, Reason: reason})
		close(s.lost)
		s.w.change()
	})
}

func (s *Session) ID() int64              { return s.id }
func (s *Session) Timeout() time.Duration { return s.timeout }
func (s *Session) Done() <-chan struct{}  { return s.lost }

func (s *Session) State() recipes.State {
	e, _, _ := s.events.Get()
	return e.State
}

func (s *Session) Err() error {
	e, _, _ := s.events.Get()
	return e.Reason
}

func (s *Session) Events(ctx context.Context) <-chan recipes.Event { return s.events.Watch(ctx) }

// Contenders knows those of locks and elections.
func (s *Session) Contenders(_ context.Context, path string, _ ...recipes.Kind) (recipes.Lines, error) {
	return recipes.Lines{Contenders: s.w.Line(path)}, s.Err()
}

func (s *Session) Stats(context.Context) (recipes.Stats, error) {
	return recipes.Stats{Reads: 1, Writes: 2, ByKind: map[string]int64{"create": 2}}, s.Err()
}

func (s *Session) Close(context.Context) error {
	if s.w.OnClose != nil && s.Err() == nil {
		s.w.OnClose(s)
	}
	s.Lose(recipes.ErrClosed)
	return nil
}

func (s *Session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return nil, err
	}
	if _, err := recipes.ParseStrategy(string(cfg.Strategy)); err != nil {
		return nil, err
	}
	return &lock{s: s, path: path, cfg: cfg}, nil
}

func (s *Session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	l, err := s.Lock(path, recipes.LockConfig{Strategy: cfg.Strategy, Joined: cfg.Joined})
	if err != nil {
		return nil, err
	}
	return &election{l.(*lock)}, nil
}

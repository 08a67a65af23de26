package fake

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/feed"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Session is a session in a World.
type Session struct {
	recipes.Recipes // nil: other recipes panic

	w      *World
	id     int64
	events *feed.Feed[recipes.Event]
	lost   chan struct{}
	once   sync.Once

	mu      sync.Mutex
	timeout time.Duration
	contact time.Time // last contact; zero: now
	known   time.Time // last contact that the leader is known to have received; zero: contact
	stats   recipes.Stats
}

func newSession(w *World, id int64, timeout time.Duration) *Session {
	return &Session{
		w: w, id: id, timeout: timeout, lost: make(chan struct{}),
		events: feed.New(recipes.Event{State: recipes.Connected}),
		stats:  recipes.Stats{ByKind: make(map[string]int64)},
	}
}

// Suspend changes the state, as the loss of a connection does.
func (s *Session) Suspend() {
	s.mu.Lock()
	s.contact = time.Now()
	s.mu.Unlock()
	s.events.Set(recipes.Event{State: recipes.Suspended})
}

// LastContact returns the current time, or the time of Suspend while the session is suspended.
func (s *Session) LastContact() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contact.IsZero() {
		return time.Now()
	}
	return s.contact
}

// KnownContact returns LastContact, or the time of CutOffLeader after it was called.
func (s *Session) KnownContact() time.Time {
	last := s.LastContact()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.IsZero() {
		return last
	}
	return s.known
}

// CutOffLeader stops KnownContact, as when the server still answers but has lost the leader.
func (s *Session) CutOffLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = time.Now()
}

// SetTimeout changes the timeout, as a server can when a session is resumed.
func (s *Session) SetTimeout(timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = timeout
}

// Lose ends the session and its grants. The reason must match recipes.ErrSessionLost. Only the
// first call counts.
func (s *Session) Lose(reason error) {
	s.once.Do(func() {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.events.Close(recipes.Event{State: recipes.Lost, Reason: reason})
		var own []*contender
		for _, line := range s.w.lines {
			for _, c := range line {
				if c.owner == s {
					own = append(own, c)
				}
			}
		}
		close(s.lost) // before the next contender is granted
		s.w.leave(fmt.Errorf("%w: %w", recipes.ErrNotHeld, reason), own...)
	})
}

func (s *Session) ID() int64 { return s.id }
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timeout
}
func (s *Session) Done() <-chan struct{} { return s.lost }

func (s *Session) State() recipes.State {
	e, _, _ := s.events.Get()
	return e.State
}

func (s *Session) Err() error {
	e, _, _ := s.events.Get()
	return e.Reason
}

func (s *Session) Events(ctx context.Context) <-chan recipes.Event { return s.events.Watch(ctx) }

// Close ends the session with ErrClosed. It calls OnClose first, unless the session is lost.
func (s *Session) Close(context.Context) error {
	if s.w.OnClose != nil && s.Err() == nil {
		s.w.OnClose(s)
	}
	s.Lose(recipes.ErrClosed)
	return nil
}

// Lock implements recipes.Recipes.
func (s *Session) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	p, err := s.point(path, recipes.KindLock, cfg.Strategy, cfg.Joined)
	return lock{p, cfg.Data}, err
}

// Election implements recipes.Recipes.
func (s *Session) Election(path string, cfg recipes.ElectionConfig) (recipes.Election, error) {
	p, err := s.point(path, recipes.KindElection, cfg.Strategy, cfg.Joined)
	return election{point: p}, err
}

func (s *Session) point(path string, kind recipes.Kind, strategy recipes.Strategy, joined func(recipes.Place)) (point, error) {
	if err := recipes.ValidatePath(path); err != nil {
		return point{}, err
	}
	strategy, err := strategy.Normalize()
	return point{s, path, kind, strategy, joined}, err
}

// Contenders returns the contenders of all locks and elections at the path, whatever the kinds.
func (s *Session) Contenders(_ context.Context, path string, _ ...recipes.Kind) (recipes.Lines, error) {
	return recipes.Lines{Contenders: s.w.Line(path)}, s.Err()
}

// Stats returns what the session's locks and elections would cost in ZooKeeper.
func (s *Session) Stats(context.Context) (recipes.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.ByKind = maps.Clone(stats.ByKind)
	return stats, s.Err()
}

func (s *Session) count(kind string, write bool, responseBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if write {
		s.stats.Writes++
	} else {
		s.stats.Reads++
	}
	s.stats.ByKind[kind]++
	s.stats.ResponseBytes += responseBytes
}

// countRead counts the read of one znode, with a reply of 80 bytes of Stat and 16 of header.
func (s *Session) countRead() { s.count("getData", false, 96) }

// countListing counts one listing, with about 56 bytes for each name.
func (s *Session) countListing(names int) { s.count("getChildren2", false, 96+56*int64(names)) }

func (s *Session) countEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.WatchEvents++
}

package session

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Exported for tests of package session_test.
const (
	IdleReceipts = idleReceipts
	MostDialects = mostDialects
)

// Places returns the number of bare znodes that the session remembers.
func (s *Session) Places() int {
	s.bare.mu.Lock()
	defer s.bare.mu.Unlock()
	return len(s.bare.byPath)
}

// WatchesKept returns the number of watches that the session remembers.
func (s *Session) WatchesKept() int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	return len(s.watches.byKey)
}

// Holds returns the number of holds that have begun and not ended.
func (s *Session) Holds() int64 { return s.lease.Holds() }

// Identified reports whether the session has an identity that no server has refused so far.
func (s *Session) Identified() bool { return s.wire.Identified() }

// Waits returns the number of contexts that wait for the creation of the znode at path.
func (s *Session) Waits(path string) int {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if w := s.watches.byKey[watchKey{path: s.full(path)}]; w != nil {
		return len(w.waits)
	}
	return 0
}

// Pace limits the session's reads per second.
func (s *Session) Pace(reads rate.Limit) { s.pace = rate.NewLimiter(reads, 1) }

// SendAfter sends a request after prepare, like the creation and the release of a bare znode.
func (s *Session) SendAfter(ctx context.Context, prepare func() error) error {
	a := exchange{session: s, requests: []conn.Request{conn.Sync("/")}, prepare: func(context.Context) error { return prepare() }}
	a.send(ctx)
	_, err := a.await(ctx)
	return err
}

// DelayWatch makes the next reads with a watch on path wait until proceed is called.
func (s *Session) DelayWatch(path string) (proceed func()) {
	key := watchKey{path: s.full(path)}
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	s.watches.removing = map[watchKey]chan struct{}{key: make(chan struct{})}
	return func() { s.watches.removed(key) }
}

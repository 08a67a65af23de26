package recipes

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// stubLock is a lock whose only hold is itself.
type stubLock struct {
	Lock
	Hold
	path     string
	acquired func() // runs in Acquire
	done     chan struct{}
	releases int
}

func (l *stubLock) Path() string          { return l.path }
func (l *stubLock) SessionID() int64      { return 1 }
func (l *stubLock) Done() <-chan struct{} { return l.done }

func (l *stubLock) Acquire(context.Context) (Hold, error) {
	l.acquired()
	return l, nil
}

func (l *stubLock) Err() error {
	if closed(l.done) {
		return ErrRemoved
	}
	return nil
}

func (l *stubLock) Release(context.Context) error {
	l.releases++
	return l.Err()
}

// A hold is lost at the moment at which the last lock is acquired. Then nothing is held. The race
// detector shows whether the set grows while another goroutine reads it.
func TestAHoldIsLostAsTheNextIsAcquired(t *testing.T) {
	for i := range 5000 {
		first := &stubLock{path: "/a", acquired: func() {}, done: make(chan struct{})}
		second := &stubLock{path: "/b", done: make(chan struct{})}
		second.acquired = func() {
			close(first.done)
			for range i % 50 {
				runtime.Gosched()
			}
		}
		if _, err := AcquireAll(t.Context(), second, first); !errors.Is(err, ErrRemoved) || first.releases != 1 || second.releases != 1 {
			t.Fatalf("%v; released %d and %d times", err, first.releases, second.releases)
		}
	}
}

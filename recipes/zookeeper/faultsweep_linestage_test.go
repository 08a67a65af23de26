package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lineStage is the stage of one case of a lock with readers and writers, or of a
// semaphore of 2 permits.
type lineStage struct {
	t             *testing.T
	victim, other recipes.Session
	expires       bool // the server expires the victim, which learns of it later

	mu      sync.Mutex
	readers int
	writers int
	permits int
}

// inside checks that who is granted may be, until done is called.
func (s *lineStage) inside(n *int) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	if s.writers > 1 || s.writers > 0 && s.readers > 0 || s.permits > 2 {
		s.t.Errorf("%d writers, %d readers, %d permits are granted at a time", s.writers, s.readers, s.permits)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*n--
	}
}

// use writes in the name of what was granted, and gives it back.
func (s *lineStage) use(ctx context.Context, h recipes.Hold, n *int) error {
	done := s.inside(n)
	err := guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

// lineAct is what the victim does; joined is called once if it stands in line.
type lineAct func(ctx context.Context, s *lineStage, joined func(recipes.Place)) error

func (s *lineStage) shared(session recipes.Session, joined func(recipes.Place)) recipes.SharedLock {
	return must[recipes.SharedLock](s.t)(session.SharedLock(sweepPath, recipes.SharedLockConfig{Data: []byte("who"), Joined: joined}))
}

// lineHolds has the other session hold, and returns how it lets go.
type lineHolds func(s *lineStage, ctx context.Context) (release func() error)

// A lineScene is an act, and what the victim meets.
type lineScene struct {
	name  string
	act   lineAct
	holds lineHolds // nil: nobody is ahead
}

// lineScenarios are the scenes. free checks that nothing of the victim is left in
// anybody's way, though its session is not closed.
func lineScenarios(scenes []lineScene, free func(*lineStage, context.Context)) []scenario {
	var all []scenario
	for _, sc := range scenes {
		all = append(all, scenario{sc.name, func(t *testing.T, at int64, f fault) int64 {
			return sweepLine(t, sc, free, at, f)
		}})
	}
	return all
}

// sweepLine runs one case.
func sweepLine(t *testing.T, sc lineScene, free func(*lineStage, context.Context), at int64, f fault) int64 {
	srv := embedded(t)
	s := &lineStage{t: t, victim: open(t, srv), other: open(t, srv), expires: slices.Contains(f.may, recipes.ErrSessionLost)}
	ctx := bounded(t)
	victimCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := f.strike(srv, s.victim, at, cancel)

	done, joined := make(chan error, 1), make(chan struct{})
	run := func() { done <- sc.act(victimCtx, s, func(recipes.Place) { close(joined) }) }
	release := func() error { return nil }
	if sc.holds != nil {
		release = sc.holds(s, ctx)
	}
	go run()
	if sc.holds != nil {
		select {
		case <-joined:
		case err := <-done:
			done <- err
		case <-ctx.Done():
			t.Fatal("the victim hangs before it has joined")
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		t.Fatal("the victim hangs")
	}
	if !f.allows(err) {
		t.Errorf("the victim's act ended with %v", err)
	}
	free(s, ctx)
	s.victim.Close(ctx)
	for _, n := range srv.Tree() {
		if strings.HasPrefix(n.Path, sweepPath+"/") && n.Path != sweepPath+"/data" {
			t.Errorf("left behind: %s of session %#x", n.Path, n.Stat.EphemeralOwner)
		}
	}
	return requests.Load()
}

// free checks that nothing of the victim stands in line, though its session is
// not closed.
func (s *lineStage) free(ctx context.Context) {
	h, err := s.shared(s.other, nil).AcquireWrite(ctx)
	if err != nil {
		s.t.Fatalf("after the fault another writer: %v", err)
	}
	done := s.inside(&s.writers)
	done()
	if err := h.Release(ctx); err != nil {
		s.t.Error(err)
	}
}

// freePermits is free for a semaphore.
func (s *lineStage) freePermits(ctx context.Context) {
	m := must[recipes.Semaphore](s.t)(s.other.Semaphore(sweepPath, recipes.SemaphoreConfig{Permits: 2}))
	a, b := must[recipes.Hold](s.t)(m.Acquire(ctx)), must[recipes.Hold](s.t)(m.Acquire(ctx))
	if err := errors.Join(a.Release(ctx), b.Release(ctx)); err != nil {
		s.t.Error(err)
	}
}

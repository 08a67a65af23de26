package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The sweep of faultsweep_test.go over the other recipes of the line. The
// permits of the semaphore are 2, so that two may hold.

// lineStage is the scene of one case.
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

// lineAct is what the victim does; joined is called once if it stands in line.
type lineAct func(ctx context.Context, s *lineStage, joined func(recipes.Place)) error

func readAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).AcquireRead(ctx)
	if err != nil {
		return err
	}
	done := s.inside(&s.readers)
	err = guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

func writeAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	done := s.inside(&s.writers)
	err = guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

func tryReadAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).TryRead(ctx)
	if errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	s.inside(&s.readers)()
	return giveBack(h.Release)
}

// downgradeAct becomes a reader, whatever the call says, while a reader of the
// other session waits behind it and a writer behind that.
func downgradeAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	inside := s.inside
	if s.expires { // at any moment, without the warning that a timeout gives
		inside = func(*int) func() { return func() {} }
	}
	done := inside(&s.writers)
	behind := make(chan error, 2)
	s.waits(behind, recipes.Reading)
	s.waits(behind, recipes.Writing)
	done()
	downgraded := h.Downgrade(ctx)
	if h.Mode() != recipes.Reading {
		s.t.Error("not a reader after Downgrade")
	}
	done = inside(&s.readers)
	if downgraded == nil && <-behind != nil {
		s.t.Error("the reader behind was not let in")
	}
	done()
	err = giveBack(h.Release)
	return errors.Join(err, downgraded)
}

// waits has the other session stand in line, take its turn and leave.
func (s *lineStage) waits(ended chan<- error, mode recipes.Mode) {
	joined := make(chan struct{})
	l := s.shared(s.other, func(recipes.Place) { close(joined) })
	ctx := bounded(s.t)
	acquire, n := l.AcquireRead, &s.readers
	if mode == recipes.Writing {
		acquire, n = l.AcquireWrite, &s.writers
	}
	go func() {
		h, err := acquire(ctx)
		if err == nil {
			s.inside(n)()
			err = h.Release(ctx)
		}
		ended <- err
	}()
	<-joined
}

func permitAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	m, err := s.victim.Semaphore(sweepPath, recipes.SemaphoreConfig{Permits: 2, Joined: joined})
	if err != nil {
		return err
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	done := s.inside(&s.permits)
	err = guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

// revokeAct has the victim ask, with and without force, a holder who consents,
// and one who does not.
func revokeAct(ctx context.Context, s *lineStage, _ func(recipes.Place)) error {
	l := must[recipes.SharedLock](s.t)(s.other.SharedLock(sweepPath, recipes.SharedLockConfig{Revocable: true, Grace: time.Millisecond}))
	h := must[recipes.SharedHold](s.t)(l.AcquireRead(bounded(s.t)))
	stuck := must[recipes.SharedHold](s.t)(l.AcquireRead(bounded(s.t)))
	revoker := s.shared(s.victim, nil)
	asked := revoker.Revoke(ctx, h.Znode())
	if asked == nil {
		<-h.Revoked()
	}
	forced := revoker.RevokeForced(ctx, stuck.Znode())
	if err := h.Release(bounded(s.t)); err != nil {
		s.t.Errorf("a request alone has taken the hold: %v", err)
	}
	if err := stuck.Release(bounded(s.t)); forced == nil && !errors.Is(err, recipes.ErrNotHeld) && err != nil {
		s.t.Errorf("release: %v", err)
	}
	return errors.Join(asked, forced)
}

// heedAct has the victim hold until it is asked for the lock.
func heedAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	l := must[recipes.SharedLock](s.t)(s.victim.SharedLock(sweepPath, recipes.SharedLockConfig{Revocable: true, Joined: joined}))
	h, err := l.AcquireWrite(ctx)
	if err != nil {
		return err
	}
	revoked := h.Revoked()
	if err := s.shared(s.other, nil).Revoke(bounded(s.t), h.Znode()); err != nil {
		s.t.Error(err)
	}
	select {
	case <-revoked:
	case <-h.Lost():
	case <-ctx.Done():
	}
	return errors.Join(giveBack(h.Release), ctx.Err())
}

func (s *lineStage) shared(session recipes.Session, joined func(recipes.Place)) recipes.SharedLock {
	return must[recipes.SharedLock](s.t)(session.SharedLock(sweepPath, recipes.SharedLockConfig{Data: []byte("who"), Joined: joined}))
}

// lineHolds has the other session hold, and returns how it lets go.
type lineHolds func(s *lineStage, ctx context.Context) (release func() error)

func holdReading(s *lineStage, ctx context.Context) func() error {
	h := must[recipes.SharedHold](s.t)(s.shared(s.other, nil).AcquireRead(ctx))
	done := s.inside(&s.readers)
	return func() error { done(); return h.Release(ctx) }
}

func holdWriting(s *lineStage, ctx context.Context) func() error {
	h := must[recipes.SharedHold](s.t)(s.shared(s.other, nil).AcquireWrite(ctx))
	done := s.inside(&s.writers)
	return func() error { done(); return h.Release(ctx) }
}

func holdDowngraded(s *lineStage, ctx context.Context) func() error {
	h := must[recipes.SharedHold](s.t)(s.shared(s.other, nil).AcquireWrite(ctx))
	if err := h.Downgrade(ctx); err != nil {
		s.t.Fatal(err)
	}
	done := s.inside(&s.readers)
	return func() error { done(); return h.Release(ctx) }
}

func holdPermits(s *lineStage, ctx context.Context) func() error {
	m := must[recipes.Semaphore](s.t)(s.other.Semaphore(sweepPath, recipes.SemaphoreConfig{Permits: 2}))
	a, b := must[recipes.Hold](s.t)(m.Acquire(ctx)), must[recipes.Hold](s.t)(m.Acquire(ctx))
	doneA, doneB := s.inside(&s.permits), s.inside(&s.permits)
	return func() error { doneB(); err := b.Release(ctx); doneA(); return errors.Join(err, a.Release(ctx)) }
}

var lineActs = []struct {
	name    string
	lineAct lineAct
	holds   lineHolds // nil: nobody is ahead
}{
	{"read/free", readAct, nil},
	{"read/behind a writer", readAct, holdWriting},
	{"read/beside a reader", readAct, holdReading},
	{"read/beside a downgraded writer", readAct, holdDowngraded},
	{"write/free", writeAct, nil},
	{"write/behind a reader", writeAct, holdReading},
	{"write/behind a downgraded writer", writeAct, holdDowngraded},
	{"try read/behind a writer", tryReadAct, holdWriting},
	{"try read/beside a downgraded writer", tryReadAct, holdDowngraded},
	{"downgrade", downgradeAct, nil},
	{"revoke", revokeAct, nil},
	{"heed", heedAct, nil},
	{"semaphore/free", permitAct, nil},
	{"semaphore/all permits taken", permitAct, holdPermits},
}

func TestFaultSweepOfTheLine(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, a := range lineActs {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				requests := actCase(t, a.lineAct, a.holds, (*lineStage).free, 0, nil, nil)
				if requests < 4 {
					t.Fatalf("the clean run made only %d requests", requests)
				}
				for at := int64(1); at <= requests; at++ {
					for _, f := range faults {
						t.Run(fmt.Sprintf("%s %d", f.name, at), func(t *testing.T) {
							cases.Add(1)
							actCase(t, a.lineAct, a.holds, (*lineStage).free, at, f.at, f.may)
						})
					}
				}
			})
		}
	})
	fmt.Printf("fault sweep of shared lock, revocation and semaphore: %d cases\n", cases.Load())
}

// actCase runs one case and returns the number of requests that the victim made.
func actCase(t *testing.T, a lineAct, holds lineHolds, free func(*lineStage, context.Context), at int64,
	fault func(*zkserver.Server, int64, context.CancelFunc) zkserver.Fault, may []error) int64 {
	srv := embedded(t)
	s := &lineStage{t: t, victim: open(t, srv), other: open(t, srv), expires: slices.Contains(may, recipes.ErrSessionLost)}
	ctx := bounded(t)
	victimCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	var requests atomic.Int64
	id := s.victim.ID()
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != id || requests.Add(1) != at {
			return zkserver.Fault{}
		}
		return fault(srv, id, cancel)
	})

	done, joined := make(chan error, 1), make(chan struct{})
	run := func() { done <- a(victimCtx, s, func(recipes.Place) { close(joined) }) }
	release := func() error { return nil }
	if holds != nil {
		release = holds(s, ctx)
	}
	go run()
	if holds != nil {
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
	allowed := err == nil
	for _, e := range may {
		allowed = allowed || e != nil && errors.Is(err, e)
	}
	if !allowed {
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
	m := must[recipes.Semaphore](s.t)(s.other.Semaphore(sweepPath, recipes.SemaphoreConfig{Permits: 2}))
	a, b := must[recipes.Hold](s.t)(m.Acquire(ctx)), must[recipes.Hold](s.t)(m.Acquire(ctx))
	if err := errors.Join(h.Release(ctx), a.Release(ctx), b.Release(ctx)); err != nil {
		s.t.Error(err)
	}
}

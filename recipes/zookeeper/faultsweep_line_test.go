package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The sweep of faultsweep_test.go over the other recipes of the line. The
// permits of the semaphore are 2, so that two may hold.

func readAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).AcquireRead(ctx)
	if err != nil {
		return err
	}
	return s.use(ctx, h, &s.readers)
}

func writeAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
	h, err := s.shared(s.victim, joined).AcquireWrite(ctx)
	if err != nil {
		return err
	}
	return s.use(ctx, h, &s.writers)
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
	return s.use(ctx, h, &s.permits)
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

// giveWayAct has the victim hold until it is asked for the lock.
func giveWayAct(ctx context.Context, s *lineStage, joined func(recipes.Place)) error {
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
	case <-h.Done():
	case <-ctx.Done():
	}
	return errors.Join(giveBack(h.Release), ctx.Err())
}

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

var lineScenes = []lineScene{
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
	{"give way", giveWayAct, nil},
}

var permitScenes = []lineScene{
	{"semaphore/free", permitAct, nil},
	{"semaphore/all permits taken", permitAct, holdPermits},
}

func TestFaultSweepOfTheLine(t *testing.T) {
	sweepFaults(t, "shared lock, revocation and semaphore", 4, slices.Concat(lineScenarios(lineScenes, (*lineStage).free), lineScenarios(permitScenes, (*lineStage).freePermits)))
}

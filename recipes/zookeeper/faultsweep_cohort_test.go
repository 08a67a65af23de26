package zookeeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// The sweep of faultsweep_test.go over a cohort of two, of whom the second waits
// while the first holds.

func cohortTurn(limit int) turn {
	return func(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error {
		first, err := enterCohort(ctx, w, s, limit, joined)
		if err != nil {
			return err
		}
		waits, second := make(chan struct{}), make(chan error, 1)
		done := w.granted(first)
		go func() {
			hold, err := enterCohort(ctx, w, s, limit, func(recipes.Place) { close(waits) })
			if err == nil {
				err = cohortHold(ctx, hold, w.granted(hold))
			}
			second <- err
		}()
		select {
		case <-waits:
		case err := <-second:
			second <- err
		}
		return errors.Join(cohortHold(ctx, first, done), <-second)
	}
}

func enterCohort(ctx context.Context, w *world, s recipes.Session, limit int, joined func(recipes.Place)) (recipes.Hold, error) {
	l, err := s.Lock(sweepPath, recipes.LockConfig{Strategy: w.strategy, Cohort: limit, Joined: joined})
	if err != nil {
		return nil, err
	}
	return l.Acquire(ctx)
}

func cohortHold(ctx context.Context, h recipes.Hold, done func()) error {
	err := guarded(ctx, h)
	done()
	return errors.Join(err, giveBack(h.Release))
}

func cohortTryTurn(ctx context.Context, w *world, s recipes.Session, joined func(recipes.Place)) error {
	l, err := s.Lock(sweepPath, recipes.LockConfig{Strategy: w.strategy, Cohort: 1, Joined: joined})
	if err != nil {
		return err
	}
	hold, err := l.TryAcquire(ctx)
	if errors.Is(err, recipes.ErrContended) && !errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	return cohortHold(ctx, hold, w.granted(hold))
}

var cohortActs = []turnAct{
	{"handed on/free", cohortTurn(1), false},
	{"handed on/contended", cohortTurn(1), true},
	{"try/free", cohortTryTurn, false},
	{"try/contended", cohortTryTurn, true},
}

func TestFaultSweepOfCohorts(t *testing.T) {
	strategies := []recipes.Strategy{recipes.Predecessor, recipes.Handoff}
	sweepFaults(t, "cohorts", 3, turnScenarios(strategies, cohortActs))
}

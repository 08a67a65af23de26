package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

var cohortScenarios = []struct {
	name      string
	turn      turn
	contended bool
}{
	{"handed on/free", cohortTurn(1), false},
	{"handed on/contended", cohortTurn(1), true},
	{"try/free", cohortTryTurn, false},
	{"try/contended", cohortTryTurn, true},
}

func TestFaultSweepOfCohorts(t *testing.T) {
	var cases atomic.Int64
	t.Run("cases", func(t *testing.T) {
		for _, strategy := range []recipes.Strategy{recipes.Predecessor, recipes.Handoff} {
			for _, sc := range cohortScenarios {
				t.Run(string(strategy)+"/"+sc.name, func(t *testing.T) {
					t.Parallel()
					requests := sweepCase(t, strategy, sc.turn, sc.contended, 0, nil, nil)
					if requests < 3 {
						t.Fatalf("the clean run made only %d requests", requests)
					}
					for at := int64(1); at <= requests; at++ {
						for _, f := range faults {
							t.Run(fmt.Sprintf("%s %d", f.name, at), func(t *testing.T) {
								cases.Add(1)
								sweepCase(t, strategy, sc.turn, sc.contended, at, f.at, f.may)
							})
						}
					}
				})
			}
		}
	})
	fmt.Printf("fault sweep of cohorts: %d cases\n", cases.Load())
}

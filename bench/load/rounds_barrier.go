package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierRound has all but the first session wait at a barrier, which the first
// removes. It times from the request to remove it until each has passed.
func (l Load) barrierRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	keeper, err := l.Sessions[0].Barrier(path)
	if err != nil {
		return 0, 0, err
	}
	if err := keeper.Set(ctx, nil); err != nil {
		return 0, 0, err
	}
	var removed atomic.Pointer[time.Time]
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return each(gctx, l.Sessions[1:], func(ctx context.Context, _ int, s recipes.Client) error {
			barrier, err := s.Barrier(path)
			if err != nil {
				return err
			}
			if err := barrier.Wait(ctx); err != nil {
				return err
			}
			start := removed.Load()
			if start == nil {
				return &Violation{"barrier", "somebody passed before it was removed"}
			}
			rec.record(rec.m.Wait, time.Since(*start))
			return nil
		})
	})
	// The contract does not tell when somebody has begun to wait.
	if _, err := settled(gctx, l.Sessions); err != nil {
		return 0, 0, firstOf(group.Wait(), err)
	}
	start := time.Now()
	removed.Store(&start)
	err = keeper.Remove(gctx)
	if waited := group.Wait(); waited != nil {
		return 0, 0, waited
	}
	return 1, time.Since(start), err
}

// doubleBarrierRound has all sessions enter a double barrier and leave it: the
// round of table 3 of the ZooKeeper paper. Wait is of entering and Service of
// leaving.
func (l Load) doubleBarrierRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	n := int64(len(l.Sessions))
	var entering, leaving atomic.Int64
	start := time.Now()
	err := each(ctx, l.Sessions, func(ctx context.Context, _ int, s recipes.Client) error {
		barrier, err := s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: int(n)})
		if err != nil {
			return err
		}
		asked := time.Now()
		entering.Add(1)
		passage, err := barrier.Enter(ctx, nil)
		if err != nil {
			return fmt.Errorf("enter: %w", err)
		}
		if there := entering.Load(); there != n {
			return &Violation{"double barrier", fmt.Sprintf("somebody had entered when only %d of %d were there", there, n)}
		}
		rec.record(rec.m.Wait, time.Since(asked))
		asked = time.Now()
		leaving.Add(1)
		if err := passage.Leave(ctx); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
		if gone := leaving.Load(); gone != n {
			return &Violation{"double barrier", fmt.Sprintf("somebody had left when only %d of %d were leaving", gone, n)}
		}
		rec.record(rec.m.Service, time.Since(asked))
		return nil
	})
	return 1, time.Since(start), err
}

// firstOf returns the first error that there is.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// round is one round of a recipe that all sessions take part in, at a path of its
// own. It returns how many operations it had and how long they took.
type round func(ctx context.Context, path string, rec *recorder) (operations int64, took time.Duration, err error)

// rounds runs one round that is not measured, which makes the parents of the
// paths, and then the measured ones.
func (l Load) rounds(ctx context.Context, r round) (Measurement, error) {
	if least := l.Workload.least(); len(l.Sessions) < least {
		return Measurement{}, fmt.Errorf("workload %s needs at least %d contenders", l.Workload, least)
	}
	if l.Rounds < 1 {
		return Measurement{}, fmt.Errorf("%d rounds; at least 1", l.Rounds)
	}
	if _, _, err := r(ctx, l.Path+"/warm-up", newRecorder()); err != nil {
		return Measurement{}, err
	}
	rec := newRecorder()
	counters, err := l.counted(ctx, func(ctx context.Context) error {
		for i := range l.Rounds {
			operations, took, err := r(ctx, fmt.Sprintf("%s/round-%d", l.Path, i), rec)
			if err != nil {
				return fmt.Errorf("round %d: %w", i+1, err)
			}
			rec.m.Operations += operations
			rec.m.Elapsed += took
		}
		return nil
	})
	if err != nil {
		return Measurement{}, err
	}
	rec.m.Counters = counters
	return rec.m, nil
}

// each calls do for sessions side by side. The first error ends the others.
func each(ctx context.Context, sessions []recipes.Client, do func(ctx context.Context, i int, s recipes.Client) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range sessions {
		group.Go(func() error { return do(ctx, i, s) })
	}
	return group.Wait()
}

package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// commitRound is a two-phase commit that the first session coordinates and in which
// all others vote for it. Wait is from a site's joining until it knows the
// decision, Service from the beginning until the coordinator knows that all have
// carried it out.
func (l Load) commitRound(ctx context.Context, path string, rec *recorder) (int64, time.Duration, error) {
	tx, err := l.Sessions[0].Transaction(path, recipes.TransactionConfig{})
	if err != nil {
		return 0, 0, err
	}
	names := make([]string, len(l.Sessions)-1)
	for i := range names {
		names[i] = fmt.Sprintf("site-%d", i+1)
	}
	start := time.Now()
	if err := tx.Begin(ctx, nil, names...); err != nil {
		return 0, 0, fmt.Errorf("begin: %w", err)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		decision, err := tx.Coordinate(gctx)
		if err == nil && !decision.Commit {
			err = &Violation{"two-phase commit", "all voted for it, and it was aborted: " + decision.Reason}
		}
		return err
	})
	group.Go(func() error {
		return each(gctx, l.Sessions[1:], func(ctx context.Context, i int, s recipes.Client) error {
			return vote(ctx, s, path, names[i], rec)
		})
	})
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	rec.record(rec.m.Service, took)
	return 1, took, nil
}

// vote is what a site does.
func vote(ctx context.Context, s recipes.Recipes, path, name string, rec *recorder) error {
	tx, err := s.Transaction(path, recipes.TransactionConfig{})
	if err != nil {
		return err
	}
	asked := time.Now()
	site, err := tx.Join(ctx, name)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := site.Vote(ctx, recipes.VoteCommit); err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	decision, err := site.Wait(ctx)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	rec.record(rec.m.Wait, time.Since(asked))
	if !decision.Commit {
		return &Violation{"two-phase commit", name + " was told of an abort: " + decision.Reason}
	}
	if err := site.Done(ctx); err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return nil
}

// Package sessions opens and closes many sessions at once.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	// parallelism is how many sessions are opened, or closed, at once.
	parallelism = 32
	// closeTimeout bounds the closing of one session.
	closeTimeout = 10 * time.Second
)

// Open opens n sessions, the i-th with config(i), and calls one after each that has opened.
// On error it leaves none open.
func Open(ctx context.Context, opener recipes.Opener, config func(i int) recipes.SessionConfig, n int, one func()) ([]recipes.Client, error) {
	all := make([]recipes.Client, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range all {
		group.Go(func() (err error) {
			if err := gctx.Err(); err != nil {
				return context.Cause(gctx)
			}
			all[i], err = opener(gctx, config(i))
			switch {
			case err != nil && n > 1 && errors.Is(err, recipes.ErrUnavailable):
				return fmt.Errorf("open session %d of %d (does the servers' maxClientCnxns allow so many connections from one address?): %w", i+1, n, err)
			case err != nil:
				return fmt.Errorf("open session %d of %d: %w", i+1, n, err)
			}
			one()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		Close(ctx, all)
		return nil, err
	}
	return all, nil
}

// Close closes sessions even if ctx is done. It skips nil, and ignores errors: a session whose
// close was not confirmed ends with its timeout. Until then its znodes do not disturb other
// trials, because each trial has a path of its own.
func Close(ctx context.Context, all []recipes.Client) {
	var group errgroup.Group
	group.SetLimit(parallelism)
	for _, s := range all {
		if s == nil {
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			_ = s.Close(ctx)
			return nil
		})
	}
	_ = group.Wait()
}

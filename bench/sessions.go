package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// counter returns a function that tells Progress of one more.
func (e Experiment) counter(what string, of int) func() {
	var done atomic.Int64
	return func() {
		if n := int(done.Add(1)); e.Progress != nil && n <= of {
			e.Progress(what, n, of)
		}
	}
}

// open opens n sessions, each with a configuration of its own, or none. It calls one for
// each that is open.
func open(ctx context.Context, opener recipes.Opener, config func(i int) recipes.SessionConfig, n int, one func()) ([]recipes.Client, error) {
	defer collectLess(n)()
	sessions := make([]recipes.Client, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range sessions {
		group.Go(func() (err error) {
			if err := gctx.Err(); err != nil {
				return context.Cause(gctx)
			}
			sessions[i], err = opener(gctx, config(i))
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
		closeAll(ctx, sessions)
		return nil, err
	}
	return sessions, nil
}

// closeAll closes sessions even if ctx has ended. An error means that the server
// has not confirmed it. What such a session leaves behind goes with its timeout
// and is in nobody's way: every trial has a path of its own.
func closeAll(ctx context.Context, sessions []recipes.Client) {
	var group errgroup.Group
	group.SetLimit(parallelism)
	for _, s := range sessions {
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

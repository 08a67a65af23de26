package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// interruptibly runs f with a session and a context that a signal ends. An error
// of f that has no exit code of its own gets the signal's then, unless f has left
// something behind of which nothing is known.
func (t *tool) interruptibly(ctx context.Context, out *output, f func(context.Context, recipes.Session) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	err := t.withSession(ctx, out, func(s recipes.Session) error { return f(ctx, s) })
	var signal job.Interruption
	var own exitError
	switch {
	case err == nil || errors.As(err, &own) || errors.Is(err, recipes.ErrUnknownOutcome):
	case errors.As(context.Cause(ctx), &signal):
		return exitError{signal.ExitCode(), fmt.Errorf("%w: %w", signal, err)}
	}
	return withCode(err)
}

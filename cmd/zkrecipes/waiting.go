package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// waiting is what verbs have in common that wait for something and then end,
// without a command.
type waiting struct{ timeout time.Duration }

func (w *waiting) flags(f *flag.FlagSet) {
	durationVar(f, &w.timeout, "timeout", 0, "give up after this `duration`, connecting included; 0 waits for ever")
}

func (w *waiting) check(try bool) error {
	switch {
	case w.timeout < 0:
		return errors.New("-timeout must not be negative")
	case try && w.timeout > 0:
		return errors.New("-try does not wait: leave -timeout out")
	}
	return nil
}

const waitHelp = `A signal ends the wait, with exit code 128+n, and leaves nothing behind.

` + waitCodes

const waitCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over, or -try would have had to wait`

// run runs f with a session, until -timeout has passed or a signal comes.
func (w *waiting) run(ctx context.Context, t *tool, out *output, what string, f func(context.Context, recipes.Session) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	bounded := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	begun := false
	err := t.withSession(bounded, out, func(s recipes.Session) error {
		begun = true
		return f(bounded, s)
	})
	var interrupted job.Interruption
	switch {
	case err == nil:
	case errors.As(context.Cause(ctx), &interrupted) && errors.Is(err, recipes.ErrUnknownOutcome): // which says more
		return exitError{exitUnknown, fmt.Errorf("%w: %w", interrupted, err)}
	case errors.As(context.Cause(ctx), &interrupted):
		return exitError{interrupted.ExitCode(), fmt.Errorf("%w: %s", interrupted, what)}
	case !late(err), errors.Is(err, recipes.ErrUnknownOutcome):
	case begun && w.timeout > 0:
		return exitWith(exitTimeout, "%s in %v", what, w.timeout)
	case bounded.Err() != nil:
		return exitWith(exitTimeout, "%s in %v: %w", what, w.timeout, err)
	case !begun: // the plugin's own time to start
		return err
	}
	return withCode(err)
}

// late reports that an error says only that some time was over. While no server
// answers that is not all.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnavailable)
}

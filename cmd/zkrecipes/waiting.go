package main

import (
	"context"
	"errors"
	"flag"
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

const waitHelp = `While no server answers, it waits too, for -timeout at most; a session that is lost is
replaced. With -try it waits for nothing. A signal ends the wait, with exit code
128+n, and leaves nothing behind.

` + waitCodes

const waitCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over while ZooKeeper answers, or -try would have had to wait`

// run runs f with a session, until -timeout has passed or a signal comes. failure
// says what has not happened then.
func (w *waiting) run(ctx context.Context, t *tool, out *output, try bool, failure string, f func(context.Context, recipes.Session) error) error {
	return waitFor(ctx, t, out, patience{timeout: w.timeout, try: try, failure: failure},
		func(ctx context.Context, s recipes.Session) (struct{}, error) { return struct{}{}, f(ctx, s) },
		func(struct{}) error { return nil })
}

// waitFor is await for a verb without a command, which a signal ends.
func waitFor[T any](ctx context.Context, t *tool, out *output, p patience,
	take func(context.Context, recipes.Session) (T, error), use func(T) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	return withCode(await(ctx, t, out, p, take, use))
}

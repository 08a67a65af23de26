package verb

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// OnceCodes are the exit codes of a verb that does not wait.
const OnceCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    what was asked for is not there
    4    it belongs to another client, or has changed; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over, and ZooKeeper answers`

// Once opens a recipe in a session and runs f with it: a request that does not wait for
// others. It gives errors their exit codes. f has DefaultOpenTimeout, and opening the
// session -connect-timeout.
func Once[R any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), f func(context.Context, R) error) error {
	return exit.Coded(once(ctx, t, open, f))
}

func once[R any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), f func(context.Context, R) error) (err error) {
	c := &connection{Tool: t, timeout: t.connectTimeout}
	defer func() { c.end(err) }() // closes the session too
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, err := open(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	err = f(ctx, r)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrUnknownOutcome) && s.State() != recipes.Connected {
		return exit.OwnError{Err: Patience{}.unanswered(err)}
	}
	return err
}

// Ask is Once for what get returns, and show shows.
func Ask[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), get func(R, context.Context) (T, error), show func(T) error) error {
	return Once(ctx, t, open, func(ctx context.Context, r R) error {
		got, err := get(r, ctx)
		if err != nil {
			return Foreign(err)
		}
		return show(got)
	})
}

// Itself opens no recipe.
func Itself(s recipes.Client) (recipes.Client, error) { return s, nil }

// Waiting is what verbs have in common that wait for something and then end,
// without a command.
type Waiting struct{ Timeout time.Duration }

// Flags defines -timeout.
func (w *Waiting) Flags(f *flag.FlagSet) {
	DurationVar(f, &w.Timeout, "timeout", 0, "give up after this `duration`, connecting included; 0 waits for ever")
}

// Check checks -timeout; try says that the verb does not wait.
func (w *Waiting) Check(try bool) error {
	switch {
	case w.Timeout < 0:
		return errors.New("-timeout must not be negative")
	case try && w.Timeout > 0:
		return errors.New("-try does not wait: leave -timeout out")
	}
	return nil
}

// WaitHelp is the end of the help of a verb that waits.
const WaitHelp = `While no server answers, it waits too, for -timeout at most; a session that is lost is
replaced. With -try it waits for nothing. A signal ends the wait, with exit code
128+n, and leaves nothing behind.

` + WaitCodes

// WaitCodes are its exit codes.
const WaitCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  the time is over while ZooKeeper answers, or -try would have had to wait`

// Wait opens a recipe and waits for what f does.
func Wait[R any](ctx context.Context, t *Tool, p Patience, open func(recipes.Client) (R, error), f func(context.Context, R) error) error {
	return WaitFor(ctx, t, p, func(ctx context.Context, s recipes.Client) (none struct{}, err error) {
		r, err := open(s)
		if err != nil {
			return none, err
		}
		return none, f(ctx, r)
	}, func(struct{}) error { return nil })
}

// WaitFor is Await for a verb without a command, which a signal ends.
func WaitFor[T any](ctx context.Context, t *Tool, p Patience, take func(context.Context, recipes.Client) (T, error), use func(T) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	return exit.Coded(Await(ctx, t, p, take, use))
}

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

// OnceCodes lists the exit codes of verbs that do not wait.
const OnceCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    the requested thing does not exist
    4    it belongs to another client, or has changed; nothing was done
    6    unknown: the answer was lost; check before you repeat it
    123  the session was lost
    124  the time is over, although ZooKeeper answers`

// Once opens a session and a recipe, and calls f, which must not wait for other clients. It
// adds exit codes to errors. -connect-timeout bounds the opening of the session, and
// recipes.DefaultOpenTimeout bounds f.
func Once[R any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), f func(context.Context, R) error) (err error) {
	c := &connection{Tool: t, timeout: t.connectTimeout}
	defer func() {
		c.end(err) // closes the session too
		err = exit.Coded(err)
	}()
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

// Ask is Once for a read: it passes the result of get to show.
func Ask[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), get func(R, context.Context) (T, error), show func(T) error) error {
	return Once(ctx, t, open, func(ctx context.Context, r R) error {
		got, err := get(r, ctx)
		if err != nil {
			return Foreign(err)
		}
		return show(got)
	})
}

// Itself is the open function of verbs that use the session itself.
func Itself(s recipes.Client) (recipes.Client, error) { return s, nil }

// Waiting is embedded by verbs that wait and run no command.
type Waiting struct {
	Timeout time.Duration
	Try     bool
}

// Flags defines -timeout.
func (w *Waiting) Flags(f *flag.FlagSet) {
	DurationVar(f, &w.Timeout, "timeout", 0, "give up after this `duration`, including the time to connect; 0 waits for ever")
}

// TryFlag defines -try.
func (w *Waiting) TryFlag(f *flag.FlagSet, usage string) { f.BoolVar(&w.Try, "try", false, usage) }

// Check returns an error if both flags are given.
func (w *Waiting) Check() error {
	if w.Try && w.Timeout > 0 {
		return errors.New("-try does not wait: leave -timeout out")
	}
	return nil
}

// Patience returns how long to wait. failure is what has not happened when the time is over.
func (w *Waiting) Patience(failure string) Patience {
	return Patience{Timeout: w.Timeout, Try: w.Try, Failure: failure}
}

// WaitHelp ends the help of verbs that wait and have -try.
const WaitHelp = `While no server answers, zkrecipes also waits, for -timeout at most. It replaces a session
that is lost. With -try it does not wait. A signal ends the wait, with exit code 128+n,
and leaves nothing behind.

` + WaitCodes

// WaitCodes lists the exit codes of verbs that wait.
const WaitCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    6    unknown: the answer was lost; check before you repeat it
    123  the session was lost (with -try), or ZooKeeper refused the credentials
    124  the time is over although ZooKeeper answers, or -try would have had to wait`

// Wait opens a recipe and calls f, which may wait for other clients.
func Wait[R any](ctx context.Context, t *Tool, p Patience, open func(recipes.Client) (R, error), f func(context.Context, R) error) error {
	return WaitFor(ctx, t, p, func(ctx context.Context, s recipes.Client) (none struct{}, err error) {
		r, err := open(s)
		if err != nil {
			return none, err
		}
		return none, f(ctx, r)
	}, func(struct{}) error { return nil })
}

// WaitFor is Await for verbs without a command. A signal ends the wait.
func WaitFor[T any](ctx context.Context, t *Tool, p Patience, take func(context.Context, recipes.Client) (T, error), use func(T) error) error {
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	return exit.Coded(Await(ctx, t, p, take, use))
}

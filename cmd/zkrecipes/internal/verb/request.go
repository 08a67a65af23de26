package verb

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// OnceCodes lists the exit codes of verbs that do not wait.
const OnceCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    the requested thing does not exist
    4    it belongs to another client, or has changed; nothing was done
    6    unknown outcome: the answer was lost; check before you repeat it
    123  the session was lost
    124  the time limit has passed, although ZooKeeper answers`

// Once opens a session and a recipe, and calls f, which must not wait for other clients. It
// adds exit codes to errors. -connect-timeout bounds the opening of the session, and
// recipes.DefaultOpenTimeout bounds f.
func Once[R any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), f func(context.Context, R) error) error {
	return once(ctx, t, open, f, func(ctx context.Context, _ recipes.Session) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	})
}

func once[R any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), f func(context.Context, R) error,
	bound func(context.Context, recipes.Session) (context.Context, context.CancelFunc)) (err error) {
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
	ctx, cancel := bound(ctx, s)
	defer cancel()
	err = f(ctx, r)
	over := errors.Is(err, context.DeadlineExceeded) && s.State() != recipes.Connected || errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errSilent)
	if over && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return exit.OwnError{Err: Patience{}.unanswered(err)}
	}
	return err
}

// Ask is Once for a read: it passes the result of get to show. A long wait queue may take minutes to
// read, so the time is bounded only while no server can be reached.
func Ask[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), get func(R, context.Context) (T, error), show func(T) error) error {
	return once(ctx, t, open, func(ctx context.Context, r R) error {
		got, err := get(r, ctx)
		if err != nil {
			return Foreign(err)
		}
		return show(got)
	}, whileConnected)
}

// errSilent ends a read during which the connection was lost.
var errSilent = errors.New("the connection was lost, and no other server answers")

// whileConnected returns a context that ends when the session has no connection at the end of a
// period of recipes.DefaultOpenTimeout.
func whileConnected(ctx context.Context, s recipes.Session) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { // until ctx ends
		for ctx.Err() == nil {
			select {
			case <-time.After(recipes.DefaultOpenTimeout):
				if s.State() != recipes.Connected {
					cancel(errSilent)
				}
			case <-ctx.Done():
			}
		}
	}()
	return ctx, func() { cancel(nil) }
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
	DurationVar(f, &w.Timeout, "timeout", 0, helptext.Common("give up after this `duration`, including the time to connect; 0 waits for ever"))
}

// TryFlag defines -try.
func (w *Waiting) TryFlag(f *flag.FlagSet, usage string) {
	f.BoolVar(&w.Try, "try", false, helptext.Common(usage))
}

// Check returns an error if both flags are given.
func (w *Waiting) Check() error {
	if w.Try && w.Timeout > 0 {
		return errors.New("-try does not wait: leave -timeout out")
	}
	return nil
}

// Patience returns how long to wait. failure is what has not happened when the timeout passes.
func (w *Waiting) Patience(failure string) Patience {
	return Patience{Timeout: w.Timeout, Try: w.Try, Failure: failure}
}

// WaitHelp ends the help of verbs that wait and have -try.
const WaitHelp = `While no server answers, zkrecipes also waits, for -timeout at most; with -try, for
-connect-timeout. It replaces a session that is lost, with -try for a minute. A signal
ends the wait, with exit code 128+n, and leaves nothing behind.

` + WaitCodes

// WaitCodes lists the exit codes of verbs that wait.
const WaitCodes = `Exit code: 0 if it was done. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    6    unknown outcome: the answer was lost; check before you repeat it
    123  sessions were lost for a minute (with -try), or ZooKeeper refused the credentials
    124  the time limit has passed although ZooKeeper answers, or -try would have had to wait`

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

// Follow opens a recipe and shows each change from watch, until a signal arrives or the
// reader of stdout has exited.
func Follow[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), watch func(R, context.Context) (<-chan T, error), show func(T) error) error {
	return follow(ctx, t, func(ctx context.Context, s recipes.Client) error {
		r, err := open(s)
		if err != nil {
			return err
		}
		changes, err := watch(r, ctx)
		if err != nil {
			return err
		}
		for c := range changes {
			if err := show(c); err != nil {
				return err
			}
		}
		return whyClosed(ctx, s)
	})
}

// Poll is Follow for what cannot be watched. It calls read, which also shows what it has read, and
// again after each pause that read returns.
func Poll(ctx context.Context, t *Tool, read func(context.Context, recipes.Client) (pause time.Duration, err error)) error {
	return follow(ctx, t, func(ctx context.Context, s recipes.Client) error {
		for {
			pause, err := read(ctx, s)
			if err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case <-ctx.Done():
				return whyClosed(ctx, s)
			case <-s.Done():
				return whyClosed(ctx, s)
			case <-time.After(pause):
			}
		}
	})
}

func follow(ctx context.Context, t *Tool, f func(context.Context, recipes.Client) error) error {
	if f, ok := t.Stdout.(*os.File); ok {
		var stop func()
		ctx, stop = whileRead(ctx, f)
		defer stop()
	}
	err := Wait(ctx, t, Patience{Failure: "no session was open"}, Itself, f)
	if errors.Is(err, syscall.EPIPE) || errors.Is(context.Cause(ctx), syscall.EPIPE) { // SIGPIPE ends most programs here
		return exit.Silently(job.ExitSignal + int(syscall.SIGPIPE))
	}
	return err
}

// whyClosed returns the reason why a watch has ended: the loss of the session, or nil after a
// signal, or else errWatch. It waits a moment for the loss, which may be reported later.
func whyClosed(ctx context.Context, s recipes.Session) error {
	const moment = 2 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, moment, errWatch)
	defer cancel()
	select {
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errWatch) {
			return errWatch
		}
		return nil
	}
}

// errWatch means that a read failed for a lasting reason, such as an ACL.
var errWatch = errors.New("the watch has ended, but the session has not: PATH can no longer be read")

// Change is an element of a watched list. Was is its earlier value, or nil if it is new.
type Change[T any] struct {
	Was *T
	Is  T
}

// Compare returns the elements that are in before and not in now, and all elements of now.
// Elements with the same key are the same element.
func Compare[T any, K comparable](before, now []T, key func(T) K) (gone []T, present []Change[T]) {
	known, kept := map[K]*T{}, map[K]bool{}
	for i := range before {
		known[key(before[i])] = &before[i]
	}
	for _, one := range now {
		kept[key(one)] = true
		present = append(present, Change[T]{known[key(one)], one})
	}
	return slices.DeleteFunc(slices.Clone(before), func(one T) bool { return kept[key(one)] }), present
}

// FollowHelp ends the help of each verb that uses Follow.
const FollowHelp = `While no server answers, zkrecipes waits. If its session is lost, it opens another one.
It exits as soon as the reader of its output has exited.

Exit code: 0 after a signal. Otherwise:

    1      zkrecipes failed, for example because it may not read PATH
    2      wrong usage or configuration
    123    ZooKeeper refused the credentials
    141    the reader of the output has exited
    128+n  signal n came while no session was open`

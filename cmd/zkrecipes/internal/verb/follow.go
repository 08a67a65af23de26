package verb

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Follow opens a recipe and shows each change from watch, until a signal arrives or the
// reader of stdout has exited.
func Follow[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), watch func(R, context.Context) (<-chan T, error), show func(T) error) error {
	if f, ok := t.Stdout.(*os.File); ok {
		var stop func()
		ctx, stop = whileRead(ctx, f)
		defer stop()
	}
	err := Wait(ctx, t, Patience{Failure: "no session was open"}, Itself, func(ctx context.Context, s recipes.Client) error {
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

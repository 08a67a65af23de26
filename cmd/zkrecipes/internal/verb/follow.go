package verb

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Follow opens a recipe and shows every change that watch gives, until a signal ends it, or
// its reader has.
func Follow[R, T any](ctx context.Context, t *Tool, open func(recipes.Client) (R, error), watch func(R, context.Context) (<-chan T, error), show func(T) error) error {
	if f, ok := t.Stdout.(*os.File); ok {
		var stop func()
		ctx, stop = whileRead(ctx, f)
		defer stop()
	}
	err := Wait(ctx, t, Patience{Failure: "nothing was shown"}, Itself, func(ctx context.Context, s recipes.Client) error {
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
	if errors.Is(err, syscall.EPIPE) || errors.Is(context.Cause(ctx), syscall.EPIPE) { // as any program that writes to one that has ended
		return exit.Silently(job.ExitSignal + int(syscall.SIGPIPE))
	}
	return err
}

// whyClosed returns why a watch has ended. The loss of the session may be reported a moment
// after the end of the watch.
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
		return nil // the signal
	}
}

// errWatch: a look failed for a reason that will last, such as an ACL.
var errWatch = errors.New("the watch has ended though the session has not: what is watched cannot be read any more")

// FollowHelp is the end of the help of a verb that follows.
const FollowHelp = `While no server answers, it waits, and goes on with another session if its own is lost.
It ends at once when nobody reads what it writes.

Exit code: 0 when a signal has ended it. Otherwise:

    1    zkrecipes failed, for example because it may not read PATH
    2    wrong usage or configuration
    123  ZooKeeper refused the credentials
    128  and n: signal n came before there was anything to show; 141: nobody reads`

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// follow shows every change that a channel gives, until a signal ends it, or its
// reader has.
func follow[T any](ctx context.Context, t *tool, out *output,
	watch func(context.Context, recipes.Session) (<-chan T, error), show func(T) error) error {
	if f, ok := out.stdout.(*os.File); ok {
		var stop func()
		ctx, stop = whileRead(ctx, f)
		defer stop()
	}
	err := waitFor(ctx, t, out, patience{failure: "nothing was shown"}, func(ctx context.Context, s recipes.Session) (struct{}, error) {
		changes, err := watch(ctx, s)
		if err != nil {
			return struct{}{}, err
		}
		for c := range changes {
			if err := show(c); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, whyClosed(ctx, s)
	}, func(struct{}) error { return nil })
	if errors.Is(err, syscall.EPIPE) || errors.Is(context.Cause(ctx), syscall.EPIPE) { // as any program that writes to one that has ended
		return exitError{code: job.ExitSignal + int(syscall.SIGPIPE)}
	}
	return err
}

// whyClosed says why a watch has ended. The loss of the session may be told a
// moment later than the end of the watch.
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

const followHelp = `While no server answers, it waits, and goes on with another session if its own is lost.
It ends at once when nobody reads what it writes.

Exit code: 0 when a signal has ended it. Otherwise:

    1    zkrecipes failed, for example because it may not read PATH
    2    wrong usage or configuration
    123  ZooKeeper refused the credentials
    128  and n: signal n came before there was anything to show; 141: nobody reads`

// line writes one change: in JSON one object a line.
func (o *output) line(value any, text string) error {
	if !o.json {
		_, err := fmt.Fprintln(o.stdout, text)
		return err
	}
	return json.NewEncoder(o.stdout).Encode(value)
}

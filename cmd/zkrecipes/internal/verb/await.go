package verb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Patience is how long a verb waits, and what it says when it does not any more.
type Patience struct {
	Timeout time.Duration // connecting included; 0 waits for ever
	Try     bool          // do not wait: neither for others nor for servers
	Failure string        // what has not happened, such as "/l was not granted"; "" if errors say it
	Hint    string        // what to do about it, if it was waited for others; may be empty
}

// Await gets something with take, which may wait for others, and uses it with use.
//
// Until take has succeeded, Await waits for servers too, and replaces a session that
// is lost: nothing depends on one. After that nothing is replaced, because what was
// granted was granted to this session.
//
// ctx ends with a signal. An error has the exit code of the signal. If the time is over
// while ZooKeeper answers, it has that of the time. An error that has a code already, or
// says more, keeps it.
func Await[T any](ctx context.Context, t *Tool, p Patience,
	take func(context.Context, recipes.Client) (T, error), use func(T) error) (err error) {
	bounded, cancel := within(ctx, p.Timeout)
	defer cancel()
	c := &connection{Tool: t}
	if p.Try {
		c.timeout = t.connectTimeout
	}
	defer func() { c.end(err) }()
	a := &attempts{connection: c}
	for {
		begun := time.Now()
		s, err := c.open(bounded)
		answers := false // ZooKeeper
		if err == nil {
			a.opened()
			var got T
			if got, err = take(bounded, s); err == nil {
				err = use(got)
				return p.explain(ctx, s.State() == recipes.Connected, false, err)
			}
			answers = s.State() == recipes.Connected
			closeSession(s)
		}
		if p.Try || !replaceable(err) || bounded.Err() != nil {
			return p.explain(ctx, answers, over(bounded, err), err)
		}
		a.failed(err, time.Since(begun))
		if a.Rest(bounded); bounded.Err() != nil {
			return p.explain(ctx, false, over(bounded, err), err)
		}
	}
}

// within bounds a wait; 0 is no bound.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// replaceable reports whether another session may do better. Not where the outcome
// is unknown: what was asked for may have happened.
func replaceable(err error) bool {
	switch {
	case errors.Is(err, recipes.ErrUnknownOutcome), errors.Is(err, recipes.ErrAuthFailed):
		return false
	}
	_, coded := errors.AsType[exit.Error](err)
	return !coded && (errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrUnavailable))
}

// closeSession has the servers forget a session in which nothing was granted.
func closeSession(s recipes.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	_ = s.Close(ctx) // it ends with the plugin otherwise
}

// over reports whether an attempt failed because the time is over.
func over(bounded context.Context, err error) bool {
	return bounded.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || replaceable(err))
}

// explain gives an error its exit code. answers says that the session was connected when
// the wait ended, over that the time is over. Without an answer from ZooKeeper nothing is
// known about other contenders, so that the exit code is that of a failure.
func (p Patience) explain(ctx context.Context, answers, over bool, err error) error {
	interrupted, signalled := errors.AsType[job.Interruption](context.Cause(ctx))
	_, coded := errors.AsType[exit.Error](err)
	_, own := errors.AsType[exit.OwnError](err)
	switch {
	case err == nil || coded:
		return err
	case errors.Is(err, recipes.ErrUnknownOutcome) && signalled:
		return exit.With(exit.Unknown, "%w: %w", interrupted, err)
	case errors.Is(err, recipes.ErrUnknownOutcome):
		return err
	case signalled && p.Failure == "":
		return exit.With(interrupted.ExitCode(), "%w: %w", interrupted, err)
	case signalled:
		return exit.With(interrupted.ExitCode(), "%w: %s", interrupted, p.Failure)
	case errors.Is(err, context.DeadlineExceeded) && !own: // the plugin may notice it first
		over = true
	}
	if over && (!answers || replaceable(err)) {
		return exit.OwnError{Err: p.unanswered(err)}
	}
	switch {
	case over && p.Failure == "":
		return exit.With(exit.Timeout, "%w", err)
	case over && p.Timeout == 0: // the time was another's, such as that of one request
		return exit.With(exit.Timeout, "%s: %w", p.Failure, err)
	case over && p.Hint != "":
		return exit.With(exit.Timeout, "%s in %v; %s", p.Failure, p.Timeout, p.Hint)
	case over:
		return exit.With(exit.Timeout, "%s in %v", p.Failure, p.Timeout)
	}
	return err
}

// unanswered says that the time is over, and that ZooKeeper did not answer.
func (p Patience) unanswered(err error) error {
	_, own := errors.AsType[exit.OwnError](err)
	if !own && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrSessionLost) {
		err = fmt.Errorf("ZooKeeper does not answer: %w; zkrecipes doctor says what to do", err)
	}
	switch {
	case p.Failure == "":
		return err
	case p.Timeout == 0:
		return fmt.Errorf("%s: %w", p.Failure, err)
	}
	return fmt.Errorf("%s in %v: %w", p.Failure, p.Timeout, err)
}

// attempts are those of one await.
type attempts struct {
	*connection
	Rests
	told bool // that no session is open
}

// Rests are the pauses between attempts. They grow from the first to the last. After an
// attempt that lasted at least as long as stable, they start from the first again.
type Rests struct{ pause time.Duration }

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	stable     = 10 * time.Second
)

// failed says that no session is open. It says so once, until one is open again.
func (a *attempts) failed(err error, after time.Duration) {
	a.Next(after)
	if a.told {
		return
	}
	a.told = true
	text := fmt.Sprintf("waiting for ZooKeeper: %v", err)
	if errors.Is(err, recipes.ErrSessionLost) {
		text = fmt.Sprintf("opening another session: %v", err)
	}
	a.report("reconnecting", err.Error(), text)
}

func (a *attempts) opened() {
	if a.told {
		a.report("reconnected", "", "connected to ZooKeeper again")
	}
	a.told = false
}

// report tells people at a terminal, and readers of JSON. Elsewhere it is for the log.
func (a *attempts) report(what, cause, text string) {
	switch {
	case a.JSON || Terminal(a.Stderr):
		a.Event(Event{Event: what, Cause: cause}, text)
	default:
		a.cfg.Plugin.Logger.Info(text)
	}
}

// Next chooses the next pause, after an attempt that has lasted for so long.
func (r *Rests) Next(lasted time.Duration) {
	r.pause = min(max(2*r.pause, firstPause), lastPause)
	if lasted > stable {
		r.pause = firstPause
	}
}

// Rest waits, a fifth more or less, so that the many who have lost their sessions
// together do not come back together.
func (r *Rests) Rest(ctx context.Context) {
	timer := time.NewTimer(time.Duration(float64(r.pause) * (0.8 + 0.4*rand.Float64())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Reset starts from the first pause again.
func (r *Rests) Reset() { r.pause = 0 }

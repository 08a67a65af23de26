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

// Patience says how long a verb waits, and what the error says when it gives up.
type Patience struct {
	Timeout time.Duration // including the time to connect; 0 waits for ever
	Try     bool          // wait neither for other clients nor for servers; see tryFor
	Failure string        // what has not happened, such as "/l was not granted"; "" if the error of take says it
	Hint    string        // advice if other clients were the reason; may be empty
}

// Await calls take, which may wait for other clients, and then use with its result.
//
// Until take has succeeded, Await also waits for servers, and replaces a session that is
// lost: nothing depends on it yet. After that it opens no other session, because the grant
// belongs to this one. With Try it does not wait for servers, but it replaces lost sessions
// too, for tryFor.
//
// A signal ends ctx, and the error then has the exit code of the signal. If the timeout
// passes while ZooKeeper answers, the error has the exit code exit.Timeout. An error that has
// a code already keeps it. An unknown outcome is reported as such, even after a signal.
func Await[T any](ctx context.Context, t *Tool, p Patience,
	take func(context.Context, recipes.Client) (T, error), use func(T) error) (err error) {
	bounded, cancel := within(ctx, p.Timeout)
	defer cancel()
	c := &connection{Tool: t, lasting: true}
	if p.Try {
		c.timeout = t.connectTimeout
	}
	defer func() { c.end(err) }()
	a := &attempts{connection: c, since: time.Now()}
	for {
		begun := time.Now()
		s, err := c.open(bounded)
		opened, answers := err == nil, false // answers: ZooKeeper does
		if opened {
			a.opened()
			var got T
			if got, err = take(bounded, s); err == nil {
				err = use(got)
				return p.explain(ctx, s.State() == recipes.Connected, false, err)
			}
			answers = s.State() == recipes.Connected
			closeSession(s)
		}
		if !replaceable(err) || bounded.Err() != nil || p.Try && !a.triesAgain(err, opened, time.Since(begun)) {
			return p.explain(ctx, answers, over(bounded, err), err)
		}
		a.failed(err, time.Since(begun))
		if a.Pause(bounded); bounded.Err() != nil {
			return p.explain(ctx, false, over(bounded, err), err)
		}
	}
}

// within returns ctx with a timeout, or without one if timeout is 0.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// replaceable reports whether the attempt can be repeated in another session. It cannot if
// the outcome is unknown, because the request may have been carried out.
func replaceable(err error) bool {
	switch {
	case errors.Is(err, recipes.ErrUnknownOutcome), errors.Is(err, recipes.ErrAuthFailed):
		return false
	}
	_, coded := errors.AsType[exit.Error](err)
	return !coded && (errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrUnavailable))
}

// closeSession closes a session in which nothing was granted.
func closeSession(s recipes.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	_ = s.Close(ctx) // on an error the session ends with the plugin
}

// over reports whether an attempt failed because the timeout has passed.
func over(bounded context.Context, err error) bool {
	return bounded.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || replaceable(err))
}

// explain adds the exit code to an error. answers means that the session was connected when
// the wait ended. over means that the timeout has passed. If ZooKeeper does not answer,
// nothing is known about other contenders, so the exit code is the one for failures.
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
	case over && p.Timeout == 0: // the timeout of one request has passed, not the verb's
		return exit.With(exit.Timeout, "%s: %w", p.Failure, err)
	case over && p.Hint != "":
		return exit.With(exit.Timeout, "%s within %v; %s", p.Failure, p.Timeout, p.Hint)
	case over:
		return exit.With(exit.Timeout, "%s within %v", p.Failure, p.Timeout)
	}
	return err
}

// unanswered returns the error for a wait that ended without an answer from ZooKeeper.
func (p Patience) unanswered(err error) error {
	_, own := errors.AsType[exit.OwnError](err)
	if !own && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrSessionLost) {
		err = fmt.Errorf("ZooKeeper does not answer: %w; run zkrecipes doctor for advice", err)
	}
	switch {
	case p.Failure == "":
		return err
	case p.Timeout == 0:
		return fmt.Errorf("%s: %w", p.Failure, err)
	}
	return fmt.Errorf("%s within %v: %w", p.Failure, p.Timeout, err)
}

type attempts struct {
	*connection
	Backoff
	since    time.Time // when the first one began
	reported bool      // that no session is open
}

// tryFor is how long a verb with Patience.Try replaces lost sessions. On a machine that has too
// much to do, a process may not run for a whole session timeout. Its session is then lost,
// although the servers answer, and nothing is known about other clients.
const tryFor = time.Minute

// triesAgain reports whether a verb with Patience.Try makes another attempt after err. It does
// after the loss of a session, but it does not wait for servers longer than -connect-timeout.
// opened reports whether the session was open, and lasted is the duration of the attempt.
func (a *attempts) triesAgain(err error, opened bool, lasted time.Duration) bool {
	return errors.Is(err, recipes.ErrSessionLost) && time.Since(a.since) < tryFor && (opened || lasted < a.timeout)
}

// Backoff computes the pauses between attempts. Each is twice as long as the one before, from
// firstPause to lastPause. After an attempt that lasted longer than stable, the next pause is
// firstPause again.
type Backoff struct{ pause time.Duration }

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	stable     = 10 * time.Second
)

// failed reports that no session is open: once, until one is open again.
func (a *attempts) failed(err error, after time.Duration) {
	a.Next(after)
	if a.reported {
		return
	}
	a.reported = true
	text := fmt.Sprintf("waiting for ZooKeeper: %v", err)
	if errors.Is(err, recipes.ErrSessionLost) {
		text = fmt.Sprintf("opening another session: %v", err)
	}
	a.report("reconnecting", err.Error(), text)
}

func (a *attempts) opened() {
	if a.reported {
		a.report("reconnected", "", "connected to ZooKeeper again")
	}
	a.reported = false
}

// report writes an event in JSON, a text to a terminal, and elsewhere a log entry.
func (a *attempts) report(what, cause, text string) {
	if a.JSON || Terminal(a.Stderr) {
		a.Event(Event{Event: what, Cause: cause}, text)
		return
	}
	a.cfg.Plugin.Logger.Info(text)
}

// Next chooses the next pause. lasted is the duration of the last attempt.
func (r *Backoff) Next(lasted time.Duration) {
	r.pause = min(max(2*r.pause, firstPause), lastPause)
	if lasted > stable {
		r.pause = firstPause
	}
}

// Pause waits for the current pause, or until ctx ends. The pause varies by a fifth, so that clients
// that have lost their sessions together do not return together.
func (r *Backoff) Pause(ctx context.Context) {
	timer := time.NewTimer(time.Duration(float64(r.pause) * (0.8 + 0.4*rand.Float64())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

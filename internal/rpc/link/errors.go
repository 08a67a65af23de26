package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Answers reports whether the plugin's error answers an earlier call of the same write too.
func Answers(e error) bool {
	return definite(e) && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded)
}

// definite reports whether the plugin's error determines the outcome of a call.
func definite(e error) bool {
	for _, none := range []error{recipes.ErrUnknownOutcome, recipes.ErrSessionLost, recipes.ErrUnavailable, recipes.ErrThrottled} {
		if errors.Is(e, none) {
			return false
		}
	}
	return true
}

// causeTimeout is how long a call that gRPC failed waits at least for the session's stream
// to report the cause: see awaitCause.
const causeTimeout = time.Second

// awaitCause waits until the session's stream has reported why a call failed: ended is closed,
// or the session is over. It gives up when ctx ends, or when patience has fired and the stream
// works: the plugin echoes a heartbeat that was sent after that. Time alone does not show that
// the stream works. On a busy machine, a call may fail long before the end of the stream, or of
// the process, is noticed.
func (s *Session) awaitCause(ctx context.Context, ended <-chan struct{}, patience <-chan time.Time) {
	var sent time.Time
	var echoed <-chan struct{}
	for {
		select {
		case <-ended:
			return
		case <-s.over.Done():
			return
		case <-ctx.Done():
			return
		case <-patience:
			sent = time.Now()
			s.sendHeartbeat()
		case <-echoed:
		}
		if echoed = s.clock.since(sent); echoed == nil {
			return
		}
	}
}

// explain returns the error of a failed call. An error from the plugin's recipes already names
// the operation; explain adds what to all other errors, and to the error of a plugin that
// lacks the recipe.
func (s *Session) explain(ctx context.Context, what string, err error) error {
	if u := (unserved{}); errors.As(err, &u) {
		return fmt.Errorf("%s: %w", what, u.error)
	}
	e, answered := wire.Error(err)
	v := s.selectError(ctx, e, answered)
	switch {
	case answered && v == e && !errors.Is(e, recipes.ErrUnsupported):
		return e
	case answered:
		v = KeepOutcome(v, e)
	}
	return fmt.Errorf("%s: %w", what, v)
}

// explainWrite returns the error of a failed write. Without an answer it adds
// recipes.ErrUnknownOutcome, unless the write was certainly not carried out.
func (s *Session) explainWrite(ctx context.Context, what string, err error) error {
	e, answered := wire.Error(err)
	switch {
	case errors.Is(err, unanswered{}):
		return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, err)
	case answered, unsent(err):
		return s.explain(ctx, what, err)
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %v", what, recipes.ErrTooLarge, e) // refused before it was read
	}
	return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, s.selectError(ctx, e, answered))
}

// KeepOutcome combines the loss of a session with the plugin's answer to the call: that its
// outcome is unknown, or that it was not carried out. The loss alone says neither.
func KeepOutcome(lost, reply error) error {
	for _, outcome := range []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld} {
		if errors.Is(reply, outcome) && !errors.Is(lost, outcome) {
			lost = fmt.Errorf("%w: %w", outcome, lost)
		}
	}
	return lost
}

// selectError selects the error of a failed call. The loss of the session takes precedence, and
// the stream gives its reason more precisely than a call does.
func (s *Session) selectError(ctx context.Context, e error, answered bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	switch {
	case answered && errors.Is(e, context.Canceled) && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return s.interrupted(ctx.Err()) // the call was abandoned at its deadline
	case answered && (errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded)):
		return s.interrupted(e) // the plugin's timer fired slightly before ctx's
	case answered && !errors.Is(e, recipes.ErrSessionLost):
		return e
	case !answered && errors.Is(e, recipes.ErrTooLarge): // refused before it was read: the stream has no reason for it
		return e
	case !answered && ctx.Err() != nil:
		return s.interrupted(ctx.Err())
	}
	s.awaitCause(ctx, nil, time.After(causeTimeout))
	switch err := s.Err(); {
	case err != nil:
		return err
	case ctx.Err() != nil && (!answered || !isLoss(e)): // a plugin that has detached the session answers ErrSessionLost
		return s.interrupted(ctx.Err()) // gRPC's timers on either side may fire slightly earlier
	}
	return e
}

// interrupted returns the error of a call whose context ended before the answer. While no
// server can be reached, the error says so too.
func (s *Session) interrupted(err error) error {
	if s.State() == recipes.Suspended && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", recipes.ErrUnavailable, err)
	}
	return err
}

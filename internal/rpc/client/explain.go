package client

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

// verdictTimeout is how long a call that gRPC failed waits for the session's stream, on the
// same connection, to report the cause.
const verdictTimeout = time.Second

// explain returns the error of a failed call. An error from the plugin's recipes already names
// the operation; explain adds what to all other errors, also if the plugin lacks the recipe.
func (s *session) explain(ctx context.Context, what string, err error) error {
	if u := (unserved{}); errors.As(err, &u) {
		return fmt.Errorf("%s: %w", what, u.error)
	}
	e, answered := wire.Error(err)
	v := s.verdict(ctx, e, answered)
	switch {
	case answered && v == e && !errors.Is(e, recipes.ErrUnsupported):
		return e
	case answered:
		v = keepOutcome(v, e)
	}
	return fmt.Errorf("%s: %w", what, v)
}

// explainWrite returns the error of a failed write. Without an answer it adds
// recipes.ErrUnknownOutcome, unless the write was certainly not carried out.
func (s *session) explainWrite(ctx context.Context, what string, err error) error {
	e, answered := wire.Error(err)
	switch {
	case errors.Is(err, unanswered{}):
		return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, err)
	case answered, errors.As(err, new(unserved)):
		return s.explain(ctx, what, err)
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %v", what, recipes.ErrTooLarge, e) // refused before it was read
	}
	return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, s.verdict(ctx, e, answered))
}

// keepOutcome combines the loss of a session with the plugin's answer to the call: that its
// outcome is unknown, or that it was not carried out. The loss alone says neither.
func keepOutcome(lost, reply error) error {
	for _, outcome := range []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld} {
		if errors.Is(reply, outcome) && !errors.Is(lost, outcome) {
			lost = fmt.Errorf("%w: %w", outcome, lost)
		}
	}
	return lost
}

// verdict selects the error of a failed call. The loss of the session takes precedence, and
// the stream gives its reason more precisely than a call does.
func (s *session) verdict(ctx context.Context, e error, answered bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	switch {
	case answered && (errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded)):
		return s.interrupted(e) // the plugin's timer fired slightly before ctx's
	case answered && !errors.Is(e, recipes.ErrSessionLost):
		return e
	case !answered && errors.Is(e, recipes.ErrTooLarge): // refused before it was read: the stream has no reason for it
		return e
	case !answered && ctx.Err() != nil:
		return s.interrupted(ctx.Err())
	}
	wait := time.NewTimer(verdictTimeout)
	defer wait.Stop()
	select {
	case <-s.over.Done():
		return s.Err()
	case <-ctx.Done(): // gRPC's timers on either side may fire slightly earlier
		if !answered || !isLoss(e) { // a plugin that has detached the session answers ErrSessionLost
			return s.interrupted(ctx.Err())
		}
	case <-wait.C:
	}
	return e
}

// interrupted returns the error of a call whose context ended before the answer. While no
// server can be reached, the error says so too.
func (s *session) interrupted(err error) error {
	if s.State() == recipes.Suspended && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", recipes.ErrUnavailable, err)
	}
	return err
}

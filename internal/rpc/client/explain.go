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

// verdictTimeout is how long a call that gRPC failed waits for the session's
// stream, on the same connection, to say what happened.
const verdictTimeout = time.Second

// explain returns the error of a call that gRPC says has failed. An error of the
// plugin's recipes already names the operation. A plugin without that recipe cannot
// name it.
func (s *session) explain(ctx context.Context, what string, err error) error {
	if u := (unserved{}); errors.As(err, &u) {
		return fmt.Errorf("%s: %w", what, u.error)
	}
	e, said := wire.Error(err)
	v := s.verdict(ctx, e, said)
	switch {
	case said && v == e && !errors.Is(e, recipes.ErrUnsupported):
		return e
	case said:
		v = keepOutcome(v, e)
	}
	return fmt.Errorf("%s: %w", what, v)
}

// explainWrite is explain for a write.
func (s *session) explainWrite(ctx context.Context, what string, err error) error {
	e, said := wire.Error(err)
	switch {
	case errors.Is(err, unanswered{}):
		return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, err)
	case said, errors.As(err, new(unserved)):
		return s.explain(ctx, what, err)
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %v", what, recipes.ErrTooLarge, e) // refused unread
	}
	return fmt.Errorf("%s: %w: %w", what, recipes.ErrUnknownOutcome, s.verdict(ctx, e, said))
}

// keepOutcome adds to the loss of a session what the plugin has said of the call:
// that its outcome is unknown, or that it was not carried out. The loss alone tells
// neither.
func keepOutcome(lost, said error) error {
	for _, outcome := range []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld} {
		if errors.Is(said, outcome) && !errors.Is(lost, outcome) {
			lost = fmt.Errorf("%w: %w", outcome, lost)
		}
	}
	return lost
}

// verdict chooses the error of a failed call. The loss of the session explains
// everything, and the stream knows its reason better than a call does.
func (s *session) verdict(ctx context.Context, e error, said bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	switch {
	case said && (errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded)):
		return s.interrupted(e) // the plugin's timer was a moment faster than ctx's
	case said && !errors.Is(e, recipes.ErrSessionLost):
		return e
	case !said && errors.Is(e, recipes.ErrTooLarge): // refused unread: the stream knows nothing of it
		return e
	case !said && ctx.Err() != nil:
		return s.interrupted(ctx.Err())
	}
	wait := time.NewTimer(verdictTimeout)
	defer wait.Stop()
	select {
	case <-s.over.Done():
		return s.Err()
	case <-ctx.Done(): // gRPC's own timers, on either side, may be a moment faster
		if !said || !isLoss(e) { // a plugin that has let go of the session says that it has lost it
			return s.interrupted(ctx.Err())
		}
	case <-wait.C:
	}
	return e
}

// interrupted is the error of a call whose context has ended before an answer. While
// no server can be reached, it says that too.
func (s *session) interrupted(err error) error {
	if s.State() == recipes.Suspended && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", recipes.ErrUnavailable, err)
	}
	return err
}

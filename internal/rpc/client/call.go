package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// verdictTimeout is how long a call that gRPC failed waits for the session's
// stream, on the same connection, to say what happened.
const verdictTimeout = time.Second

// retryPause is the pause between attempts of a call that is repeated until it is
// answered.
const retryPause = 100 * time.Millisecond

// call makes a unary call that may be repeated, and that ends with ctx and with the
// session. It says in the contract's errors why it failed.
func (s *session) call(ctx context.Context, what string, rpc func(context.Context) error) error {
	err := s.again(ctx, rpc)
	if err == nil {
		return nil
	}
	return s.explain(ctx, what, err)
}

// query is call for a call that only asks for its answer. An error comes without an
// answer.
func query[T any](ctx context.Context, s *session, what string, rpc func(context.Context) (T, error)) (T, error) {
	var told T
	err := s.call(ctx, what, func(ctx context.Context) (err error) {
		told, err = rpc(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return told, nil
}

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

// linger waits for d, unless the session is lost or ctx ends before.
func (s *session) linger(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-s.over.Done():
	case <-ctx.Done():
	case <-wait.C:
	}
}

// interrupted is the error of a call whose context has ended before an answer. While
// no server can be reached, it says that too.
func (s *session) interrupted(err error) error {
	if s.State() == recipes.Suspended && !errors.Is(err, recipes.ErrUnavailable) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", recipes.ErrUnavailable, err)
	}
	return err
}

// persist repeats a call until it is answered or the session is over. The call must
// be one that can be repeated. It returns what the plugin said.
func (s *session) persist(rpc func(context.Context) error) error {
	for {
		t, err := s.counted(s.over, 0, rpc)
		if err == nil {
			return nil
		}
		e, said := wire.Error(err)
		switch moved := s.outlived(s.over, t, err); {
		case moved:
		case said:
			return e
		case !rest(s.over):
			return s.Err()
		}
	}
}

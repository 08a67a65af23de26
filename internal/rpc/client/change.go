package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// change makes a call that is never repeated, because what it does may not be done
// twice. When gRPC fails the call, its outcome is unknown. The stream may tell the loss
// of the session before the call's answer is here, and the answer knows more: the call
// has a moment left to bring it.
func (s *session) change(ctx context.Context, what string, rpc func(context.Context) error) error {
	return s.changeBy(ctx, what, s.changing, rpc)
}

// A making makes the call of a change. It has some time left when the session is over.
type making func(ctx context.Context, left time.Duration, rpc func(context.Context) error) error

// changeBy is change for a call that is made in some way.
func (s *session) changeBy(ctx context.Context, what string, make making, rpc func(context.Context) error) error {
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := make(ctx, answerTime, rpc); err != nil {
		return s.explainChange(ctx, what, err)
	}
	return nil
}

// changing makes the call of a change. If its plugin has ended before the answer, and the
// session goes on, the outcome is unknown. A plugin that lets go of the session refuses
// calls that it has not begun, and these are made again.
func (s *session) changing(ctx context.Context, left time.Duration, rpc func(context.Context) error) error {
	for {
		t, err := s.counted(ctx, left, rpc)
		if !s.outlived(ctx, t, err) {
			return err
		}
		if e, said := wire.Error(err); !said || errors.Is(e, recipes.ErrUnknownOutcome) {
			return unanswered{}
		}
	}
}

// repeating is changing for a call that may be made twice: it is made again when its
// plugin has ended. If no plugin answers in the end, the outcome is unknown.
func (s *session) repeating(answers func(e error) bool) making {
	return func(ctx context.Context, left time.Duration, rpc func(context.Context) error) error {
		return s.repeated(ctx, answers, func() (*tenure, error) { return s.once(ctx, left, rpc) })
	}
}

func (s *session) repeated(ctx context.Context, answers func(e error) bool, once func() (*tenure, error)) error {
	for sent := false; ; {
		t, err := once()
		e, said := wire.Error(err)
		switch {
		case s.outlived(ctx, t, err):
			sent = sent || !said || errors.Is(e, recipes.ErrUnknownOutcome)
			continue
		case sent && err != nil && !(said && answers(e)):
			return fmt.Errorf("%w, and then: %w", unanswered{}, s.verdict(ctx, e, said))
		}
		return err
	}
}

// answers reports whether an error of the plugin's is the answer to a call that was made
// before, as it would be to that.
func answers(e error) bool {
	for _, none := range []error{recipes.ErrUnknownOutcome, recipes.ErrSessionLost, recipes.ErrUnavailable, recipes.ErrThrottled, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e, none) {
			return false
		}
	}
	return true
}

// unanswered is the error of a change whose plugin has ended.
type unanswered struct{}

func (unanswered) Error() string { return "the plugin has ended before it answered" }

// explainChange is explain for a call that is never repeated.
func (s *session) explainChange(ctx context.Context, what string, err error) error {
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

// answerTime is what the answer may take to a call that was abandoned or whose session
// was lost. It takes microseconds. Only a busy machine needs more, and there an unknown
// outcome is worse than a late one.
const answerTime = time.Second

// changeAbandonably is changeBy for a call that may wait for long before it does
// anything, and whose request id the plugin knows. When ctx is cancelled, the plugin
// is told so by Abandon. The call then has a moment left in which it answers what
// has become of it. Cancelling the call itself would leave that unknown. A call that
// gRPC failed is abandoned too, if it is not repeated: the caller does not know what it
// does.
func (s *session) changeAbandonably(ctx context.Context, what string, make making, rpc func(ctx context.Context, requestID string) error) error {
	id := s.requestID()
	abandon := sync.OnceFunc(func() { s.abandon(id) })
	made := func(ctx context.Context, left time.Duration, rpc func(context.Context) error) error {
		err := make(ctx, left, rpc)
		if _, said := wire.Error(err); err != nil && !said && !errors.As(err, new(unserved)) {
			abandon()
		}
		return err
	}
	return s.changeBy(ctx, what, made, func(wanted context.Context) error {
		call, cancel := context.WithCancel(context.WithoutCancel(wanted))
		defer cancel()
		if end, ends := wanted.Deadline(); ends {
			call, cancel = context.WithDeadline(call, end)
			defer cancel()
		}
		defer context.AfterFunc(wanted, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				abandon()
				s.linger(call, answerTime)
			}
			cancel()
		})()
		return rpc(call, id)
	})
}

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
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := s.changing(ctx, answerTime, rpc); err != nil {
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

// changeAbandonably is change for a call that may wait for long before it does
// anything, and whose request id the plugin knows. When ctx is cancelled, the plugin
// is told so by Abandon. The call then has a moment left in which it answers what
// has become of it. Cancelling the call itself would leave that unknown. A call that
// gRPC failed is abandoned too: the caller does not know what it does.
func (s *session) changeAbandonably(ctx context.Context, what string, rpc func(ctx context.Context, requestID string) error) error {
	id := s.requestID()
	abandon := sync.OnceFunc(func() { s.abandon(id) })
	return s.change(ctx, what, func(wanted context.Context) error {
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
		err := rpc(call, id)
		if _, said := wire.Error(err); err != nil && !said {
			abandon()
		}
		return err
	})
}

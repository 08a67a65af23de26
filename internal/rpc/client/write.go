package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// once is the way of a write whose doing twice would do harm. If gRPC fails it, or its plugin
// ends before it answers, and the session goes on, its outcome is unknown. The stream may
// tell the loss of the session before the call's answer is here, and the answer knows more:
// the call has a moment left to bring it.
var once = way{once: true, counted: true, left: answerTime}

// repeated is the way of a write that may be made twice: it is made again when its plugin
// has ended. answers reports whether what the next one says answers the call before too.
// Otherwise the outcome is unknown.
func repeated(answers func(e error) bool) way { return way{answers: answers, left: answerTime} }

// by is for a call with a request id, which may wait for long before it does anything. When
// its caller cancels it, the plugin is told so by Abandon. The call then has a moment left in
// which it answers what has become of it. Cancelling the call itself would leave that
// unknown. A call that gRPC failed is abandoned too: the caller does not know what it does.
func (w way) by(id string) way { w.id = id; return w }

// answerTime is what the answer may take to a call that was abandoned or whose session
// was lost. It takes microseconds. Only a busy machine needs more, and there an unknown
// outcome is worse than a late one.
const answerTime = time.Second

// write makes a call that changes something.
func (s *session) write(ctx context.Context, how way, rpc func(context.Context) error) error {
	if how.id == "" {
		return s.complete(ctx, how, rpc)
	}
	abandon := sync.OnceFunc(func() { s.abandon(how.id) })
	err := s.complete(ctx, how, func(wanted context.Context) error {
		calling, cancel := context.WithCancel(context.WithoutCancel(wanted))
		defer cancel()
		if end, ends := wanted.Deadline(); ends {
			calling, cancel = context.WithDeadline(calling, end)
			defer cancel()
		}
		defer context.AfterFunc(wanted, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				abandon()
				s.linger(calling, answerTime)
			}
			cancel()
		})()
		return rpc(calling)
	})
	if _, said := wire.Error(err); err != nil && !said && !errors.As(err, new(unserved)) {
		abandon()
	}
	return err
}

// answers reports whether an error of the plugin's is the answer to a call that was made
// before, as it would be to that.
func answers(e error) bool {
	return definite(e) && !errors.Is(e, context.Canceled) && !errors.Is(e, context.DeadlineExceeded)
}

// definite reports whether an error of the plugin's says what has become of a call.
func definite(e error) bool {
	for _, none := range []error{recipes.ErrUnknownOutcome, recipes.ErrSessionLost, recipes.ErrUnavailable, recipes.ErrThrottled} {
		if errors.Is(e, none) {
			return false
		}
	}
	return true
}

// writeAs makes a write once in a grant's name. It ends with the session, as the grant does.
// ops are those that it is about, if any.
func writeAs[Q, A any](ctx context.Context, g *grant, what string, ask method[Q, A], request Q, ops ...recipes.Op) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := g.s.complete(ctx, way{once: true, counted: true}, func(ctx context.Context) error { _, err := ask(ctx, request); return err })
	if err == nil {
		return nil
	}
	e, said := wire.WriteError(err, ops)
	var refused *recipes.WriteError
	if errors.As(e, &refused) {
		return refused
	}
	if said {
		g.judge(e)
	}
	err = g.s.explainWrite(ctx, what, err)
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return notHeld(err)
}

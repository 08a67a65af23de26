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

// once is the way of a write that must not be made twice. If gRPC fails the call, or its
// plugin ends before it answers and the session continues, the outcome is unknown. The stream
// may report the loss of the session before the call's answer arrives, and the answer is more
// precise. So the call may continue for a moment.
var once = way{once: true, counted: true, left: answerTime}

// repeated is the way of a write that may be made twice. It is repeated if its plugin has
// ended. answers reports whether an error from the next plugin also answers the earlier call.
// If it does not, the outcome is unknown.
func repeated(answers func(e error) bool) way { return way{answers: answers, left: answerTime} }

// by adds a request id, for a call that may wait long before it changes anything. When the
// caller cancels the call, the plugin is notified by Abandon. The call then has a moment left
// to answer with its outcome. Cancelling the call itself would leave the outcome unknown. A
// call that gRPC failed is abandoned too: the caller does not know its effect.
func (w way) by(id string) way { w.id = id; return w }

// answerTime bounds the wait for the answer to a call that was abandoned, or whose session
// was lost. The answer normally takes microseconds. A busy machine may need more, and there
// an unknown outcome is worse than a late one.
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
	if _, answered := wire.Error(err); err != nil && !answered && !errors.As(err, new(unserved)) {
		abandon()
	}
	return err
}

// answers reports whether the plugin's error answers an earlier call of the same write too.
func answers(e error) bool {
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

// writeAs makes a write once, on behalf of a grant. The call ends with the session, like the
// grant. ops are the operations of a guarded write.
func writeAs[Q, A any](ctx context.Context, g *remoteGrant, what string, ask method[Q, A], request Q, ops ...recipes.Op) error {
	if err := g.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := g.s.complete(ctx, way{once: true, counted: true}, func(ctx context.Context) error { _, err := ask(ctx, request); return err })
	if err == nil {
		return nil
	}
	e, answered := wire.WriteError(err, ops)
	var refused *recipes.WriteError
	if errors.As(e, &refused) {
		return refused
	}
	if answered {
		g.judge(e)
	}
	err = g.s.explainWrite(ctx, what, err)
	if errors.Is(err, recipes.ErrUnknownOutcome) {
		return err
	}
	return notHeld(err)
}

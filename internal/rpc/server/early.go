package server

import (
	"context"
	"time"
)

// answerTime bounds the time that an answer takes to reach the host.
const answerTime = 250 * time.Millisecond

// withTimeToAnswer returns ctx with a deadline slightly before its own. It is used for calls
// that wait and are never repeated. At the caller's deadline gRPC fails the call in the host,
// and its outcome is then unknown. A call that ends before that can still report its outcome.
func withTimeToAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(answerTime, time.Until(end)/4)))
}

// patient returns the context of a call that may wait long and change something. It ends when
// the call is abandoned, and slightly before the call's deadline, so that an answer can
// report the outcome.
func (ss *session) patient(ctx context.Context, r interface{ GetRequestId() string }) (context.Context, context.CancelFunc) {
	ctx, end := ss.acquisitions.abandonable(ctx, r.GetRequestId())
	ctx, cancel := withTimeToAnswer(ctx)
	return ctx, func() { cancel(); end() }
}

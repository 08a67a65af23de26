package server

import (
	"context"
	"time"
)

// answerTime is what an answer may take on its way to the host.
const answerTime = 250 * time.Millisecond

// early is ctx, with an end a moment before its own. It is for calls that wait and
// are never repeated. At the end of the caller's time gRPC fails the call in the
// host by itself, and then its outcome is unknown. A call that has ended before that
// can still say what it has done.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(answerTime, time.Until(end)/4)))
}

// patient is the context of a call that may wait for long and change something. It
// ends when the call is abandoned, and a moment before the call's time is up. So an
// answer says what has become of the call.
func (ss *session) patient(ctx context.Context, r interface{ GetRequestId() string }) (context.Context, context.CancelFunc) {
	ctx, end := ss.acquisitions.abandonable(ctx, r.GetRequestId())
	ctx, cancel := early(ctx)
	return ctx, func() { cancel(); end() }
}

package server

import (
	"context"
	"time"
)

// answerTime is what an answer may take on its way to the host.
const answerTime = 250 * time.Millisecond

// early is ctx, with an end a moment before its own. It is for calls that wait and
// are never repeated: at the end of the caller's time gRPC fails the call in the
// host by itself, and then nobody knows whether it was carried out. What has
// ended before can still say that it was not.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(answerTime, time.Until(end)/4)))
}

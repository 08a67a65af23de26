package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// exchange is requests that are sent in the caller's goroutine, of which the outcome
// may be awaited in another.
type exchange struct {
	session  *Session
	requests []conn.Request

	sent       *conn.Batch
	failed     error // what became of sending it
	connection int   // on which it was sent
}

// begin sends them when the session is connected. Where that fails, some of it
// may have been sent. A server that reads nothing any more, with full buffers in
// between, keeps begin past the end of ctx, until the deadline for writing has passed.
// That is two thirds of the session timeout.
func (a *exchange) begin(ctx context.Context) {
	if a.connection, _, a.failed = a.session.connectedAfter(ctx, 0); a.failed != nil {
		return
	}
	a.sent, a.failed = a.session.wire.Sender().Identified().Send(a.requests...)
}

// await returns the replies to what was begun.
func (a *exchange) await(ctx context.Context) ([]conn.Reply, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	return a.sent.Await(ctx)
}

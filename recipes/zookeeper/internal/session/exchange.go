package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// exchange is a group of requests that are sent together. One goroutine may send them and another
// one wait for the replies.
type exchange struct {
	session  *Session
	requests []conn.Request

	sent       *conn.Batch
	failed     error // why sending failed
	connection int   // the number of the connection that was used
}

// begin sends the requests when the session is connected. If it fails, a part may have been
// sent. begin may return after ctx is done: if the server reads nothing and all buffers are full,
// it returns at the write deadline, after two thirds of the session timeout.
func (a *exchange) begin(ctx context.Context) {
	if a.connection, _, a.failed = a.session.connectedAfter(ctx, 0); a.failed != nil {
		return
	}
	a.sent, a.failed = a.session.wire.Sender().Identified().Send(a.requests...)
}

// await returns the replies to the requests that begin has sent.
func (a *exchange) await(ctx context.Context) ([]conn.Reply, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	return a.sent.Await(ctx)
}

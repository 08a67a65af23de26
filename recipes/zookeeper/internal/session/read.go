package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Stat is ZooKeeper's record of a znode.
type Stat = conn.Stat

// Node is a znode's data and record.
type Node = conn.Node

// call runs f until ctx is done or the session is lost. Then f continues in its goroutine,
// because its request may still be answered, and its result is dropped.
func call[T any](ctx context.Context, s *Session, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	done := make(chan result, 1)
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return zero, s.Err()
	}
	s.calls.Go(func() {
		value, err := f()
		done <- result{value, err}
	})
	s.mu.Unlock()
	select {
	case r := <-done:
		return r.value, r.err
	case <-s.Done():
		return zero, s.Err()
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// ask sends a request that may be repeated, until it is answered.
func ask[T any](ctx context.Context, s *Session, what, path string, request conn.Request, read func(conn.Reply) (T, error)) (T, error) {
	return readWith(ctx, s, what, path, func() (T, error) { return conn.Ask(s.wire.Current(), request, read) })
}

// readWith is ask for a request that f sends.
func readWith[T any](ctx context.Context, s *Session, what, path string, f func() (T, error)) (T, error) {
	return readAgain(ctx, s, what, path, func(ctx context.Context) (T, error) { return call(ctx, s, f) })
}

// readAgain is readWith for an f that returns when ctx is done.
func readAgain[T any](ctx context.Context, s *Session, what, path string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	for connection := 0; ; {
		var err error
		if connection, _, err = s.connectedAfter(ctx, connection); err != nil {
			return zero, err
		}
		value, err := f(ctx)
		switch {
		case err == nil:
			return value, nil
		case s.Err() != nil:
			return zero, s.Err()
		case ctx.Err() != nil:
			return zero, s.Interrupted(what+" "+path, ctx)
		case conn.Lost(err):
			continue
		}
		return zero, answer(what, path, err)
	}
}

// Children returns the names of a znode's children, in no particular order.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	l, err := ask(ctx, s, "list", path, conn.Children(s.full(path), false), conn.Reply.Listing)
	return l.Names, err
}

// List returns the names of a znode's children and the znode's record at that time.
// SessionConfig.MaxPacket does not limit it.
func (s *Session) List(ctx context.Context, path string) ([]string, Stat, error) {
	l, err := ask(ctx, s, "list", path, conn.Children(s.full(path), false).Unbounded(), conn.Reply.Listing)
	return l.Names, l.Stat, err
}

// Get returns a znode's data and record, or ErrNoNode.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return ask(ctx, s, "read", path, conn.Get(s.full(path), false), conn.Reply.Node)
}

// Stat returns a znode's record, or ErrNoNode.
func (s *Session) Stat(ctx context.Context, path string) (Stat, error) {
	return ask(ctx, s, "read", path, conn.Exists(s.full(path), false), conn.Reply.Stat)
}

// Sync brings the server of this session up to date with all writes of this session. A follower
// is also brought up to date with all writes that completed earlier. A leader waits for
// nothing: it may not have applied what a follower has already applied and confirmed (observed
// once with 3.8.0 under load). So shortly after Sync, a read on the leader may miss what
// another session has just read.
//
// Assumption: the leader orders the sync behind all requests that the session has sent through
// another server. Every search for a lost creation relies on that. The path need not exist.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := ask(ctx, s, "sync", path, conn.Sync(s.full(path)), conn.Reply.Nothing)
	return err
}

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
	a.sent, a.failed = a.session.wire.Current().Send(a.requests...)
}

// await returns the replies to the requests that begin has sent.
func (a *exchange) await(ctx context.Context) ([]conn.Reply, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	return a.sent.Await(ctx)
}

package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Stat is ZooKeeper's record of a znode.
type Stat = conn.Stat

// Node is a znode's data and record.
type Node = conn.Node

// call runs f until ctx ends or the session is lost; then f goes on by itself, for what
// it has sent may yet be answered, and its result is dropped.
func call[T any](ctx context.Context, s *Session, f func(conn.Sender) (T, error)) (T, error) {
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
		value, err := f(s.wire.Sender())
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

// readWith sends something that may be sent again, until it is answered.
func readWith[T any](ctx context.Context, s *Session, what, path string, f func(conn.Sender) (T, error)) (T, error) {
	return readAgain(ctx, s, what, path, func(ctx context.Context) (T, error) { return call(ctx, s, f) })
}

// readAgain is readWith for whatever way f sends it.
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

// Children returns the names of a znode's children, in no order.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	l, err := readWith(ctx, s, "list", path, func(r conn.Sender) (conn.Listing, error) {
		return r.Children(s.full(path), false)
	})
	return l.Names, err
}

// List is Children, with the znode's record as it was then, and not bound by
// SessionConfig.MaxPacket.
func (s *Session) List(ctx context.Context, path string) ([]string, Stat, error) {
	l, err := readWith(ctx, s, "list", path, func(r conn.Sender) (conn.Listing, error) {
		return r.Unbounded().Children(s.full(path), false)
	})
	return l.Names, l.Stat, err
}

// Get returns a znode's data and record, or ErrNoNode.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return readWith(ctx, s, "read", path, func(r conn.Sender) (Node, error) {
		return r.Get(s.full(path), false)
	})
}

// Stat returns a znode's record, or ErrNoNode.
func (s *Session) Stat(ctx context.Context, path string) (Stat, error) {
	return readWith(ctx, s, "look at", path, func(r conn.Sender) (Stat, error) {
		return r.Exists(s.full(path), false)
	})
}

// Sync brings the server that answers this session up to date with all writes of this
// session, and a follower with all that were completed before. The leader does not wait for
// anything: it may not have applied yet what a follower has applied and answered (seen once
// with 3.8.0 under load). So a read after Sync may miss what another session was just told,
// for as long as the leader needs to apply it. Assumption: it orders the sync behind what the
// session itself has sent by another server, which every search for a lost creation relies on.
// A path that does not exist is as good as any.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := readWith(ctx, s, "sync", path, func(r conn.Sender) (struct{}, error) {
		return struct{}{}, r.Sync(s.full(path))
	})
	return err
}

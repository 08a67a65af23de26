package session

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Stat is ZooKeeper's record of a znode.
type Stat = zk.Stat

// call runs f until ctx ends or the session is lost; then f goes on by itself, for what
// it has sent may yet be answered, and its result is dropped.
func call[T any](ctx context.Context, s *Session, f func(requests) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	done := make(chan result, 1)
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return zero, s.Err()
	}
	s.calls.Go(func() {
		value, err := f(requests{s: s})
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
func readWith[T any](ctx context.Context, s *Session, what, path string, f func(requests) (T, error)) (T, error) {
	return readAgain(ctx, s, what, path, func(ctx context.Context) (T, error) { return call(ctx, s, f) })
}

// readAgain is readWith for whatever way f sends it.
func readAgain[T any](ctx context.Context, s *Session, what, path string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	connections := 0
	for {
		if _, err := s.connectedAfter(ctx, connections); err != nil {
			return zero, err
		}
		now, _, _ := s.status.Get()
		connections = now.connections
		value, err := f(ctx)
		switch {
		case err == nil:
			return value, nil
		case s.Err() != nil:
			return zero, s.Err()
		case ctx.Err() != nil:
			return zero, s.interrupted(what+" "+path, ctx)
		case lostConnection(err):
			continue
		}
		return zero, answer(what, path, err)
	}
}

// interrupted says that ctx ended during a request: plainly, if the connection
// is up, or else that it was the connection that did not come back.
func (s *Session) interrupted(what string, ctx context.Context) error {
	if err := s.Err(); err != nil {
		return err
	}
	if now, _, _ := s.status.Get(); now.connected {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return s.unavailable(what, ctx)
}

// Children returns the names of a znode's children, in no order.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return readWith(ctx, s, "list", path, func(r requests) ([]string, error) {
		names, _, err := r.children(s.full(path), false)
		return names, err
	})
}

// List is Children, with the znode's record as it was then, and not bound by
// SessionConfig.MaxPacket.
func (s *Session) List(ctx context.Context, path string) ([]string, Stat, error) {
	type listing struct {
		names []string
		stat  Stat
	}
	var e jute.Encoder
	e.String(s.full(path))
	e.Bool(false)
	l, err := readAgain(ctx, s, "list", path, func(life context.Context) (listing, error) {
		replies, err := s.exchange(life, request{op: opGetChildren2, body: e.Bytes})
		if err == nil {
			err = replies[0].err()
		}
		if err != nil {
			return listing{}, err
		}
		d := jute.Decoder{Bytes: replies[0].body}
		l := listing{d.Strings(), Stat(d.Stat())}
		if l.names == nil { // the null vector, which no server sends
			d.Fail()
		}
		return l, d.Err
	})
	return l.names, l.stat, err
}

// Node is a znode's data and record.
type Node struct {
	Data []byte
	Stat Stat
	// Unreadable: the ACL hides Data. Stat is known, because nothing hides that.
	Unreadable bool
}

// Get returns a znode's data and record, or ErrNoNode.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return readWith(ctx, s, "read", path, func(r requests) (Node, error) {
		return r.get(s.full(path), false)
	})
}

// Stat returns a znode's record, or ErrNoNode.
func (s *Session) Stat(ctx context.Context, path string) (Stat, error) {
	return readWith(ctx, s, "look at", path, func(r requests) (Stat, error) {
		return r.exists(s.full(path), false)
	})
}

// Sync brings the server that answers this session up to date with all writes
// that were completed before. A path that does not exist is as good as any.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := readWith(ctx, s, "sync", path, func(r requests) (struct{}, error) {
		return struct{}{}, r.sync(s.full(path))
	})
	return err
}

package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// When a session ends, ZooKeeper 3.6 and later write the paths of all its ephemeral znodes into one
// transaction. If that is larger than the servers can read (jute.maxbuffer, and as much again by
// default), they stop, and do not start again (ZOOKEEPER-4306). So a session creates no ephemeral
// znode whose path would not fit into SessionConfig.MaxPacket together with the others.
//
// It counts the paths that it creates, and not those that are deleted: other clients delete some. When
// the count reaches the limit, the session asks the server for its paths. The reply is as large as
// these paths. The session then creates as many bytes of new paths as there is room for before it
// asks again. ClickHouse Keeper has neither that transaction nor the request, so nothing is counted
// there.
type ephemerals struct {
	mu       sync.Mutex
	bytes    int // no less than the paths that the session has, and is creating
	creating int // the part of bytes for creations whose outcome is not known
	lost     int // connections that ended during a count, one after the other
	unbound  bool

	counting chan struct{} // a mutex that can be awaited with a context: full while it is locked
}

const (
	// pathBytes is what a path takes in the transaction besides its characters: its length, and the
	// number that the server may append.
	pathBytes   = 4 + numberBytes
	numberBytes = 10

	// spareDivisor is the part of MaxPacket that is left for the transactions of contenders that
	// wait already, for example the claim of a priority lock, and for the header.
	spareDivisor = 16

	// countsLost is the number of connections that end during a count, one after the other, before
	// the session concludes that the server does not support it.
	countsLost = 3
)

// limit returns how many bytes of paths the session may have.
func (s *Session) limit(spare bool) int {
	limit := s.wire.MaxPacket - packetSlack
	if !spare {
		limit = s.wire.MaxPacket - s.wire.MaxPacket/spareDivisor
	}
	return limit
}

// reserve makes room for the creation of an ephemeral znode. Call settle when its outcome is known. spare
// allows a creation in the room that is left for transactions. If there is no room, the error matches
// recipes.ErrTooLarge, and nothing was reserved.
func (s *Session) reserve(ctx context.Context, path string, spare bool) (settle func(), err error) {
	e, size := &s.ephemerals, len(s.full(path))+pathBytes
	limit := s.limit(spare)
	e.add(size)
	if err := s.recount(ctx, limit); err != nil {
		e.settle(size, true)
		return nil, err
	}
	if has, full := e.over(limit); full && !s.wire.Keeper() {
		e.settle(size, true)
		return nil, fmt.Errorf("%w: with %s, the ephemeral znodes of this session would have %d bytes of paths; at most %d are safe with SessionConfig.MaxPacket (max_packet), %d: when the session ends, ZooKeeper writes all of them into one transaction, and servers stop at one above jute.maxbuffer; release something, use another session for a part, or raise both settings",
			recipes.ErrTooLarge, path, has, limit, s.wire.MaxPacket)
	}
	return sync.OnceFunc(func() { e.settle(size, false) }), nil
}

func (e *ephemerals) add(size int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bytes += size
	e.creating += size
}

// settle ends a reservation. If nothing was sent, its bytes are free again.
func (e *ephemerals) settle(size int, unsent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.creating -= size
	if unsent {
		e.bytes -= size
	}
}

func (e *ephemerals) over(limit int) (bytes int, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes, e.bytes > limit && !e.unbound
}

// recount asks the server for the session's paths if the count is above the limit. One goroutine does
// so at a time.
func (s *Session) recount(ctx context.Context, limit int) error {
	e := &s.ephemerals
	if _, over := e.over(limit); !over || s.wire.Keeper() {
		return nil
	}
	select {
	case e.counting <- struct{}{}:
		defer func() { <-e.counting }()
	case <-ctx.Done():
		return s.Interrupted("count the ephemeral znodes", ctx)
	}
	for connection := 0; ; {
		if _, over := e.over(limit); !over {
			return nil
		}
		var err error
		if connection, _, err = s.connectedAfter(ctx, connection); err != nil {
			return err
		}
		if again, err := s.count(ctx); err != nil || !again {
			return err
		}
	}
}

// count asks once. It reports whether the connection has ended instead.
func (s *Session) count(ctx context.Context) (again bool, _ error) {
	e := &s.ephemerals
	e.mu.Lock()
	before, creating := e.bytes, e.creating
	e.mu.Unlock()
	paths, err := call(ctx, s, func() ([]string, error) {
		return conn.Ask(s.wire.Current(), conn.Ephemerals(s.full("/")), conn.Reply.Paths)
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		// A creation in flight may be counted twice, but each is counted.
		e.lost, e.bytes = 0, e.bytes-before+creating
		for _, path := range paths {
			e.bytes += len(path) + pathBytes - numberBytes
		}
	case errors.Is(err, conn.Unimplemented):
		e.unbound = true // before 3.6; the transaction has no paths there
	case errors.Is(err, conn.ErrNotSent):
		return true, nil
	case conn.Lost(err):
		e.lost++ // a server that is not ZooKeeper may end the connection
		e.unbound = e.lost >= countsLost
		return true, nil
	case s.Err() != nil:
		return false, s.Err()
	case ctx.Err() != nil:
		return false, s.Interrupted("count the ephemeral znodes", ctx)
	default:
		return false, answer("count the ephemeral znodes below", "/", err)
	}
	return false, nil
}

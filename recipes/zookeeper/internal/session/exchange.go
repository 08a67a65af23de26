package session

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// request is one that the session sends itself, past go-zookeeper. That sets a buffer
// of the largest packet aside for each direction of each session. Nor can it send
// several requests in one write, nor create2, whose reply has the new znode's record,
// nor setWatches.
type request struct {
	op   int32
	body []byte
	most int // bytes that the reply may have; 0 is maxReply
}

// reply is the server's answer to a request.
type reply struct {
	code int32 // 0, or the error
	body []byte
}

func (r reply) err() error {
	if r.code == 0 {
		return nil
	}
	if err, ok := codes[r.code]; ok {
		return err
	}
	return fmt.Errorf("unknown error: %d", r.code) // as go-zookeeper has it
}

// codes are the errors that go-zookeeper has names for; it does not export the
// numbers.
var codes = map[int32]error{
	-8:            zk.ErrBadArguments,
	-101:          zk.ErrNoNode,
	-102:          zk.ErrNoAuth,
	-103:          zk.ErrBadVersion,
	-108:          zk.ErrNoChildrenForEphemerals,
	-110:          zk.ErrNodeExists,
	-111:          zk.ErrNotEmpty,
	-112:          zk.ErrSessionExpired,
	-114:          zk.ErrInvalidACL,
	-115:          zk.ErrAuthFailed,
	-118:          zk.ErrSessionMoved,
	codeOversized: errOversized,
}

// maxReply bounds, in bytes, what a reply may be whose request sets no bound.
const maxReply = 64 << 20

// exchange sends requests in one write on the present connection, and returns
// their replies: a server answers the requests of a connection in order. The
// error is that of the connection (see lostConnection), of ctx, or the reason why
// the session was lost; what the server thinks of a request is in its reply.
func (s *Session) exchange(ctx context.Context, requests ...request) ([]reply, error) {
	return s.exchangeOn(ctx, s.dialer.connection(), requests...)
}

// exchangeOn is exchange on one connection.
func (s *Session) exchangeOn(ctx context.Context, c *conn, requests ...request) ([]reply, error) {
	b, err := s.sendOn(c, requests)
	if err != nil {
		return nil, err
	}
	return b.await(ctx, s)
}

// sendOn sends requests in one write.
func (s *Session) sendOn(c *conn, requests []request) (*batch, error) {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		return nil, s.Err()
	}
	if c == nil {
		return nil, errNotSent
	}
	return c.send(requests)
}

// batch is requests that were sent together.
type batch struct {
	conn     *conn
	replies  []reply
	answered chan struct{} // closed when all replies are there
	missing  int           // replies; of the goroutine that reads
}

// settled reports whether there is nothing left to wait for.
func (b *batch) settled() bool {
	select {
	case <-b.answered:
	case <-b.conn.closed:
	default:
		return false
	}
	return true
}

// await returns the replies, as exchange does. It may be called again after ctx
// has ended.
func (b *batch) await(ctx context.Context, s *Session) ([]reply, error) {
	select {
	case <-b.answered:
		return b.replies, nil
	case <-b.conn.closed:
		return nil, zk.ErrConnectionClosed
	case <-s.Done():
		return nil, s.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

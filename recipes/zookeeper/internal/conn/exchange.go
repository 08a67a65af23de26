package conn

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Reply is the server's answer to a request.
type Reply struct {
	code Code // 0, or an error
	body []byte
}

// Err returns the server's error, a Code, or nil.
func (r Reply) Err() error {
	_, err := r.nothing()
	return err
}

// answer decodes a reply, unless it is an error.
func answer[T any](r Reply, read func(*jute.Decoder) T) (value T, err error) {
	if r.code != 0 {
		return value, r.code
	}
	d := jute.Decoder{Bytes: r.body}
	value = read(&d)
	return value, d.Err
}

// Stat decodes the reply to Exists.
func (r Reply) Stat() (Stat, error)        { return answer(r, (*jute.Decoder).Stat) }
func (r Reply) string() (string, error)    { return answer(r, (*jute.Decoder).String) }
func (r Reply) strings() ([]string, error) { return answer(r, (*jute.Decoder).Strings) }
func (r Reply) nothing() (struct{}, error) {
	return answer(r, func(*jute.Decoder) (none struct{}) { return })
}

// Node decodes the reply to Get.
func (r Reply) Node() (Node, error) {
	return answer(r, func(d *jute.Decoder) Node { return Node{Data: d.Buffer(), Stat: d.Stat()} })
}

// Created decodes the reply to Create2: the path at the server, and the record.
func (r Reply) Created() (path string, stat Stat, err error) {
	stat, err = answer(r, func(d *jute.Decoder) Stat { path = d.String(); return d.Stat() })
	return path, stat, err
}

// Listing holds the names of a znode's children, and the record of the znode.
type Listing struct {
	Names []string
	Stat  Stat
}

func (r Reply) listing() (Listing, error) {
	return answer(r, func(d *jute.Decoder) Listing {
		l := Listing{d.Strings(), d.Stat()}
		if l.Names == nil { // a null vector, which no server sends
			d.Fail()
		}
		return l
	})
}

// maxReply limits the size, in bytes, of a reply whose request sets no limit.
const maxReply = 64 << 20

// Batch is a group of requests that were sent together.
type Batch struct {
	Conn     *Conn
	replies  []Reply
	answered chan struct{} // closed when all replies have arrived
	missing  int           // replies that have not arrived; only the reading goroutine uses it
}

// Answered is closed when all replies have arrived.
func (b *Batch) Answered() <-chan struct{} { return b.answered }

// Settled reports whether waiting cannot change the result any more.
func (b *Batch) Settled() bool { return Happened(b.answered) || Happened(b.Conn.closed) }

// Happened reports whether a channel is closed.
func Happened(event <-chan struct{}) bool {
	select {
	case <-event:
		return true
	default:
		return false
	}
}

// Await waits for all replies. A server answers the requests of a connection in order. The
// error is the connection's (see Lost), ctx's, or the reason why the session was lost. The
// server's errors are in the replies. After ctx is done, Await may be called again with another
// context.
func (b *Batch) Await(ctx context.Context) ([]Reply, error) {
	life := b.Conn.wire.Life
	var err error
	select {
	case <-b.answered:
	case <-b.Conn.closed:
		err = errClosed
	case <-life.Done():
		err = context.Cause(life)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if Happened(b.answered) { // if several things have happened, the replies count
		return b.replies, nil
	}
	return nil, err
}

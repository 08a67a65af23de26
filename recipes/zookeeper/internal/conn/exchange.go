package conn

import (
	"context"

	"github.com/zkrecipes/zkrecipes/internal/jute"
)

// Reply is the server's answer to a request.
type Reply struct {
	code Code // 0, or the error
	body []byte
}

// Err is the error with which the server has answered, a Code, or nil.
func (r Reply) Err() error {
	_, err := r.nothing()
	return err
}

// answer reads what is in a reply that is no error.
func answer[T any](r Reply, read func(*jute.Decoder) T) (value T, err error) {
	if r.code != 0 {
		return value, r.code
	}
	d := jute.Decoder{Bytes: r.body}
	value = read(&d)
	return value, d.Err
}

// Stat is the answer to Exists.
func (r Reply) Stat() (Stat, error)        { return answer(r, (*jute.Decoder).Stat) }
func (r Reply) string() (string, error)    { return answer(r, (*jute.Decoder).String) }
func (r Reply) strings() ([]string, error) { return answer(r, (*jute.Decoder).Strings) }
func (r Reply) nothing() (struct{}, error) {
	return answer(r, func(*jute.Decoder) (none struct{}) { return })
}

// Node is the answer to Get.
func (r Reply) Node() (Node, error) {
	return answer(r, func(d *jute.Decoder) Node { return Node{Data: d.Buffer(), Stat: d.Stat()} })
}

// Created is the answer to Create2: the path at the server, and the record.
func (r Reply) Created() (path string, stat Stat, err error) {
	stat, err = answer(r, func(d *jute.Decoder) Stat { path = d.String(); return d.Stat() })
	return path, stat, err
}

// Listing is the names of a znode's children, and its record.
type Listing struct {
	Names []string
	Stat  Stat
}

func (r Reply) listing() (Listing, error) {
	return answer(r, func(d *jute.Decoder) Listing {
		l := Listing{d.Strings(), d.Stat()}
		if l.Names == nil { // the null vector, which no server sends
			d.Fail()
		}
		return l
	})
}

// maxReply bounds, in bytes, what a reply may be whose request sets no bound.
const maxReply = 64 << 20

// Batch is requests that were sent together.
type Batch struct {
	Conn     *Conn
	replies  []Reply
	answered chan struct{} // closed when all replies are there
	missing  int           // replies; of the goroutine that reads
}

// Answered is closed when all replies are there.
func (b *Batch) Answered() <-chan struct{} { return b.answered }

// Settled reports whether there is nothing left to wait for.
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

// Await returns the replies: a server answers the requests of a connection in order. The
// error is that of the connection (see Lost), of ctx, or the reason why the session was
// lost; what the server thinks of a request is in its reply. It may be called again after
// ctx has ended.
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
	if Happened(b.answered) { // the answer is worth more than what else has happened
		return b.replies, nil
	}
	return nil, err
}

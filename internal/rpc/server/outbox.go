package server

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// outbox sends on a session's stream, in a goroutine that runs only while there is something
// to send. It drops no loss before the session's end. For a host that does not read, it keeps
// up to MaxUnsent bytes. Beyond that the session ends, and its loss implies all kept losses.
type outbox struct {
	send   func(*pb.OpenResponse) error
	echo   func(heartbeat uint64) *pb.OpenResponse // made when it is sent, because it contains ages
	unread func()                                  // called once, when more than MaxUnsent waits
	run    func(func())                            // in another goroutine
	over   chan error                              // gets an element when nothing more will be sent
	limit  int                                     // MaxUnsent; smaller in tests

	mu     sync.Mutex
	out    carry.Sender[*pb.OpenResponse]
	closed bool // nothing more will be sent
	queue  []*pb.OpenResponse
	size   int              // of the queue
	full   bool             // unread was called or the stream has ended; the queue stays empty
	state  *pb.OpenResponse // the latest change, if not sent
	number uint64           // of the latest heartbeat, 0 if it was echoed
	last   *pb.OpenResponse
	then   func() // called after last was sent
	final  bool   // last is being sent
}

func sizeOf(m *pb.OpenResponse) int { return proto.Size(m) + messageOverhead }

func (o *outbox) start(send func(*pb.OpenResponse) error, echo func(uint64) *pb.OpenResponse, unread func(), run func(func())) {
	o.send, o.echo, o.unread, o.run, o.over = send, echo, unread, run, make(chan error, 1)
	o.out = carry.Sender[*pb.OpenResponse]{
		Mu: &o.mu, Next: o.next, Send: o.deliver, Sent: o.sent,
		Rest: func(send func()) { o.run(send) },
	}
}

func (o *outbox) put(m *pb.OpenResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full {
		return
	}
	if o.size += sizeOf(m); o.size > o.limit {
		o.full, o.size, o.queue = true, 0, nil
		o.run(o.unread)
		return
	}
	o.queue = append(o.queue, m)
	o.wake()
}

// change replaces the state that waits to be sent.
func (o *outbox) change(m *pb.OpenResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = m
	o.wake()
}

// heartbeat remembers the latest heartbeat. Its echo answers all heartbeats before it.
func (o *outbox) heartbeat(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number = number
	o.wake()
}

// end makes the outbox send everything that waits, and then last. The outbox is over when then
// has returned. Only the first call counts.
func (o *outbox) end(last *pb.OpenResponse, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.then = last, then
		o.wake()
	}
}

// stop makes the outbox start no goroutine any more, so that its owner can wait for them.
func (o *outbox) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run = func(func()) {}
}

// wake starts the sending goroutine if none runs. The caller holds mu.
func (o *outbox) wake() {
	if !o.closed {
		o.out.Flush(0)
	}
}

// deliver sends a message. After the final one it calls then.
func (o *outbox) deliver(m *pb.OpenResponse) error {
	err := o.send(m)
	if err == nil && o.final { // set by next in this goroutine
		o.then()
	}
	return err
}

// sent ends the outbox after an error and after the final message. Otherwise more may wait. The
// caller holds mu.
func (o *outbox) sent(_ *pb.OpenResponse, err error) (more bool) {
	if err == nil && !o.final {
		return true
	}
	o.queue, o.state = nil, nil
	o.closed, o.full = true, true
	o.over <- err
	return false
}

// next removes a message from the outbox: the final one if no other waits. The echo comes after
// the losses that are known before it. The caller holds mu.
func (o *outbox) next() (m *pb.OpenResponse, ok bool) {
	switch {
	case len(o.queue) > 0:
		m = o.queue[0]
		o.queue[0], o.queue = nil, o.queue[1:]
		o.size -= sizeOf(m)
	case o.state != nil:
		m, o.state = o.state, nil
	case o.number != 0:
		m, o.number = o.echo(o.number), 0
	case o.last != nil:
		m, o.final = o.last, true
	}
	return m, m != nil
}

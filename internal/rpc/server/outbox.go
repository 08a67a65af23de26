package server

import (
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// outbox sends on a session's stream, in a goroutine that is there while there is
// something to send. It never refuses and never drops before the end. It holds at most
// one message for each watched grant and each contender that joins, one state and one
// beat. So it needs no bound of its own.
type outbox struct {
	send func(*pb.OpenResponse) error
	echo func(beat uint64) *pb.OpenResponse // made when it is sent: it tells ages
	run  func(func())                       // in another goroutine
	over chan error                         // gets an element when nothing more is sent

	mu       sync.Mutex
	sending  bool // a goroutine does, or nothing more is sent
	messages []*pb.OpenResponse
	state    *pb.OpenResponse // the latest change, if it was not sent
	number   uint64           // of the latest beat, 0 if it was echoed
	last     *pb.OpenResponse
	then     func() // after last
}

func (o *outbox) begin(send func(*pb.OpenResponse) error, echo func(uint64) *pb.OpenResponse, run func(func())) {
	o.send, o.echo, o.run, o.over = send, echo, run, make(chan error, 1)
}

func (o *outbox) put(m *pb.OpenResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append(o.messages, m)
	o.wake()
}

// change replaces the state that waits to be sent.
func (o *outbox) change(m *pb.OpenResponse) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = m
	o.wake()
}

// beat remembers the latest beat. Its echo answers all beats before it.
func (o *outbox) beat(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number = number
	o.wake()
}

// end sends what waits, and then last. The outbox is over when then has returned. Only
// the first end counts.
func (o *outbox) end(last *pb.OpenResponse, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.then = last, then
		o.wake()
	}
}

// wake needs mu.
func (o *outbox) wake() {
	if !o.sending {
		o.sending = true
		o.run(o.work)
	}
}

func (o *outbox) work() {
	for {
		messages, last := o.take()
		for _, m := range messages {
			if err := o.send(m); err != nil {
				o.close(err)
				return
			}
		}
		switch {
		case last:
			o.then()
			o.close(nil)
			return
		case len(messages) == 0:
			return
		}
	}
}

// take empties the outbox. last reports whether nothing comes after messages. If there
// are none, the goroutine that sends has to end.
func (o *outbox) take() (messages []*pb.OpenResponse, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, o.messages = o.messages, nil
	if o.state != nil {
		messages, o.state = append(messages, o.state), nil
	}
	if o.number != 0 {
		messages = append(messages, o.echo(o.number))
		o.number = 0
	}
	if o.last != nil {
		return append(messages, o.last), true
	}
	o.sending = len(messages) > 0
	return messages, false
}

func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages, o.state = nil, nil // and sending stays true
	o.over <- err
}

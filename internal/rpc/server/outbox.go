package server

import (
	"sync"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// outbox holds what waits to be sent on a session's stream. It never refuses and
// never drops. It holds at most one message for each watched grant and each
// contender that joins, and one beat. So it needs no bound of its own.
type outbox struct {
	ready chan struct{} // holds one element when there is something to take

	mu       sync.Mutex
	messages []*pb.OpenResponse
	number   uint64
}

func (o *outbox) put(m *pb.OpenResponse) {
	o.mu.Lock()
	o.messages = append(o.messages, m)
	o.mu.Unlock()
	o.wake()
}

// beat remembers the latest beat. Its echo answers all beats before it.
func (o *outbox) beat(number uint64) {
	o.mu.Lock()
	o.number = number
	o.mu.Unlock()
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// take empties the outbox. beat is 0 if none has come.
func (o *outbox) take() (messages []*pb.OpenResponse, beat uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	messages, beat = o.messages, o.number
	o.messages, o.number = nil, 0
	return messages, beat
}

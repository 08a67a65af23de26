package carry

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// earlyKey is the context key of a func([]byte) in a host's call, and of a *running in the
// plugin's.
type earlyKey struct{}

// WithEarly makes a call pass the early parts of its response message to read, in its
// caller's goroutine, while the call continues. A call that is not carried never calls read.
func WithEarly(ctx context.Context, read func([]byte)) context.Context {
	return context.WithValue(ctx, earlyKey{}, read)
}

// Early returns a function by which a service sends a part of the response message before it
// returns the whole message. The host gets both merged. Early returns nil if the host reads
// no parts. After the end of the call the function does nothing.
func Early(ctx context.Context) func(proto.Message) {
	if r, ok := ctx.Value(earlyKey{}).(*running); ok {
		return r.early
	}
	return nil
}

// running is a call whose host reads early parts.
type running struct {
	id  uint64
	out *outbox

	mu    sync.Mutex
	ended bool
}

func (r *running) early(m proto.Message) {
	payload, err := proto.Marshal(m)
	if err != nil || len(payload) > part { // the whole message fails too, or contains it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.out.put(&pb.Answer{Id: r.id, Payload: payload, More: true})
	}
}

// end makes early do nothing. It is called before the answer is sent.
func (r *running) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

package carry

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// earlyKey is the key of a func([]byte) in the context of a host's call, and of a
// *running in that of the plugin's.
type earlyKey struct{}

// WithEarly has read called with what is known of a call's response message while the
// call goes on, in its caller's goroutine. A call that is not carried never calls it.
func WithEarly(ctx context.Context, read func([]byte)) context.Context {
	return context.WithValue(ctx, earlyKey{}, read)
}

// Early returns how a service sends what is known of the response message of a call,
// before it returns the whole message. Both are merged. It returns nil if the host does
// not read it. After the end of the call it does nothing.
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
	if err != nil || len(payload) > part { // the whole message fails too, or tells it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.out.put(&pb.Answer{Id: r.id, Payload: payload, More: true})
	}
}

// end is called before the answer is sent.
func (r *running) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

package carry

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// call is a call that waits for its answer.
type call struct {
	id    uint64
	bytes int           // that it takes of the limits
	end   uint64        // where it ends among the bytes that were queued
	part  chan struct{} // gets an element when the caller wants to read what has come; may be nil

	// Set before done gets its element.
	payload []byte
	err     error
	done    chan struct{} // of one element
}

func (c *call) add(b []byte) {
	if c.payload == nil {
		c.payload = b
		return
	}
	c.payload = append(c.payload, b...)
}

// invoke makes a call on the stream, if its payload has at most that many bytes. If
// the stream cannot have it, carried is false, and nothing was sent.
func (s *Stream) invoke(ctx context.Context, h stats.Handler, most int, method string, request, reply any) (err error, carried bool) {
	in, ok := request.(proto.Message)
	out, fits := reply.(proto.Message)
	md, plain := toMetadata(ctx)
	if !ok || !fits || !plain || ctx.Err() != nil {
		return nil, false
	}
	payload, err := proto.Marshal(in)
	m := &pb.Call{Method: method, Payload: payload, Metadata: md}
	if err != nil || len(payload) > most || size(m)-len(payload) > overhead/2 || !s.reserve(len(payload)) {
		return nil, false
	}
	if h == nil {
		return s.do(ctx, m, out), true
	}
	ctx, end := begin(ctx, h, method, payload)
	m.Metadata, _ = toMetadata(ctx)
	err = s.do(ctx, m, out)
	end(out, err)
	return err, true
}

// begin and the function that it returns tell h what gRPC tells of a call.
func begin(ctx context.Context, h stats.Handler, method string, payload []byte) (context.Context, func(proto.Message, error)) {
	ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method, FailFast: true})
	began := time.Now()
	h.HandleRPC(ctx, &stats.Begin{Client: true, BeginTime: began, FailFast: true})
	h.HandleRPC(ctx, &stats.OutPayload{Client: true, Length: len(payload), SentTime: began})
	return ctx, func(reply proto.Message, err error) {
		ended := time.Now()
		if err == nil {
			h.HandleRPC(ctx, &stats.InPayload{Client: true, Payload: reply, RecvTime: ended})
		}
		h.HandleRPC(ctx, &stats.End{Client: true, BeginTime: began, EndTime: ended, Error: err})
	}
}

// do sends a call that has its place and waits for the answer.
func (s *Stream) do(ctx context.Context, m *pb.Call, reply proto.Message) error {
	m.Timeout = toTimeout(ctx)
	read, _ := ctx.Value(earlyKey{}).(func([]byte))
	m.Early = read != nil
	c := s.send(m)
	if c == nil {
		return status.Error(codes.Unavailable, "the stream of calls has ended")
	}
	for answered := false; !answered; {
		select {
		case <-c.done:
			answered = true
		case <-c.part:
			read(s.soFar(c))
		case <-ctx.Done():
			select {
			case <-c.done: // both: the answer is worth more
				answered = true
			default:
				s.cancel(c.id)
				return status.FromContextError(ctx.Err()).Err()
			}
		}
	}
	payload, err := c.payload, c.err
	if err != nil {
		select {
		case <-c.part: // which the answer would repeat
			read(payload)
		default:
		}
	}
	s.recycle(c)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(payload, reply); err != nil {
		return status.Errorf(codes.Internal, "unmarshalling the answer: %v", err)
	}
	return nil
}

// reserve has the stream keep a place for a call, if it has one. A stream that has
// ended has none.
func (s *Stream) reserve(payload int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits
	if s.taken >= l.Calls || payload > l.Payload || payload+overhead > l.Message || s.bytes+payload > l.Bytes {
		return false
	}
	s.taken++
	s.bytes += payload
	return true
}

// soFar returns what has come of the answer.
func (s *Stream) soFar(c *call) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.payload // of which nothing changes when more comes
}

// recycle keeps a call that was answered for another one.
func (s *Stream) recycle(c *call) {
	*c = call{done: c.done}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) < maxIdle {
		s.idle = append(s.idle, c)
	}
}

// maxIdle bounds what is kept for the next calls.
const maxIdle = 64

// newCall returns a call. It needs mu.
func (s *Stream) newCall() *call {
	n := len(s.idle) - 1
	if n < 0 {
		return &call{done: make(chan struct{}, 1)}
	}
	c := s.idle[n]
	s.idle = s.idle[:n]
	return c
}

// giveBack gives a place back. It needs mu.
func (s *Stream) giveBack(payload int) {
	s.taken--
	s.bytes -= payload
}

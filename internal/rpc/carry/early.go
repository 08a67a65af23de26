package carry

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

// earlyKey is the context key of a func(proto.Message) in a host's call, and of a *running in
// the plugin's.
type earlyKey struct{}

// WithEarly makes a call of a Conn pass what is known of its answer to read, in its caller's
// goroutine: early parts while the call continues, and then the whole answer. Each part has the
// fields of the earlier ones. A connection that was not dialled with DialOption has no parts.
func WithEarly(ctx context.Context, read func(proto.Message)) context.Context {
	return context.WithValue(ctx, earlyKey{}, read)
}

// reader returns the function that reads the parts of a call's answer, or nil.
func reader(ctx context.Context) func(proto.Message) {
	read, _ := ctx.Value(earlyKey{}).(func(proto.Message))
	return read
}

// readPart passes the parts that have arrived to read. answer has the type of the whole answer.
func readPart(read func(proto.Message), arrived []byte, answer any) {
	part := answer.(proto.Message).ProtoReflect().New().Interface()
	if proto.Unmarshal(arrived, part) == nil {
		read(part)
	}
}

// Early returns a function by which a service sends a part of its answer before the whole
// answer, which must contain the part, or before an error. Early returns nil if the host reads
// no parts. After the end of the call the function does nothing.
func Early(ctx context.Context) func(proto.Message) {
	if r, ok := ctx.Value(earlyKey{}).(*running); ok {
		return r.early
	}
	return nil
}

// running is a plugin's call whose host reads early parts.
type running struct {
	send func(part []byte)

	mu    sync.Mutex
	ended bool
}

func (r *running) early(m proto.Message) {
	b, err := proto.Marshal(m)
	if err != nil || len(b) > part { // the whole message fails too, or contains it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.send(b)
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

// inParts returns a call of the connection. It continues, so put sends at most one message itself.
func (c *carrier) inParts(id uint64) *running {
	return &running{send: func(part []byte) { c.out.put(&pb.Answer{Id: id, Payload: part, More: true}, 1) }}
}

// invokeInParts makes a call by PluginService.Call: gRPC sends no part of a unary call's answer.
func invokeInParts(ctx context.Context, conn grpc.ClientConnInterface, method string, request, reply any, options ...grpc.CallOption) error {
	payload, err := proto.Marshal(request.(proto.Message))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := pb.NewPluginServiceClient(conn).Call(ctx, &pb.CallRequest{Method: method, Payload: payload}, options...)
	if err != nil {
		return err
	}
	read, answer := reader(ctx), []byte(nil)
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return proto.Unmarshal(answer, reply.(proto.Message))
		}
		if err != nil {
			return err
		}
		answer = append(answer, m.GetPayload()...)
		readPart(read, answer, reply)
	}
}

// ServeInParts is PluginService.Call.
func (d *Dispatcher) ServeInParts(r *pb.CallRequest, st grpc.ServerStreamingServer[pb.CallResponse]) error {
	early := &running{send: func(part []byte) { _ = st.Send(&pb.CallResponse{Payload: part}) }}
	ctx := context.WithValue(st.Context(), earlyKey{}, early)
	answer, err := d.call(ctx, &pb.Call{Method: r.GetMethod(), Payload: r.GetPayload()})
	early.end()
	if err != nil {
		return err
	}
	return st.Send(&pb.CallResponse{Payload: answer})
}

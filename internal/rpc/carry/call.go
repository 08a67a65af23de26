package carry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
)

type call struct {
	id    uint64
	bytes int           // counted against the limits
	end   uint64        // Calls.queued when the call was queued
	part  chan struct{} // gets an element when a part has arrived; nil if the caller reads no parts

	// Set before done gets its element.
	payload []byte
	err     error
	done    chan struct{} // holds one element
}

func (c *call) add(b []byte) {
	if c.payload == nil {
		c.payload = b
		return
	}
	c.payload = append(c.payload, b...)
}

// invoke makes a call on the connection, if the payload has at most most bytes. If the
// connection cannot carry the call, carried is false, and nothing was sent.
func (cs *Calls) invoke(ctx context.Context, h stats.Handler, most int, method string, request, reply any) (err error, carried bool) {
	in, ok := request.(proto.Message)
	out, fits := reply.(proto.Message)
	md, plain := toMetadata(ctx)
	if !ok || !fits || !plain || ctx.Err() != nil {
		return nil, false
	}
	payload, err := proto.Marshal(in)
	m := &pb.Call{Method: method, Payload: payload, Metadata: md}
	if err != nil || len(payload) > most || size(m)-len(payload) > overhead/2 || !cs.reserve(len(payload)) {
		return nil, false
	}
	if h == nil {
		return cs.do(ctx, m, out), true
	}
	ctx, end := reportBegin(ctx, h, method, payload)
	m.Metadata, _ = toMetadata(ctx)
	err = cs.do(ctx, m, out)
	end(out, err)
	return err, true
}

// reportBegin reports to h that a call begins, as gRPC does. The returned function reports that the
// call has ended.
func reportBegin(ctx context.Context, h stats.Handler, method string, payload []byte) (context.Context, func(proto.Message, error)) {
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

// UnsentError is the error of a call that has ended before it was sent to the plugin.
type UnsentError struct{ Err error }

func (u UnsentError) Error() string { return u.Err.Error() }
func (u UnsentError) Unwrap() error { return u.Err }

// do sends a call that has a reserved place, and waits for the answer.
func (cs *Calls) do(ctx context.Context, m *pb.Call, reply proto.Message) error {
	m.Timeout = toTimeout(ctx)
	read := reader(ctx)
	m.Early = read != nil
	c := cs.send(m)
	if c == nil {
		return UnsentError{status.Error(codes.Unavailable, "the connection of calls has ended")}
	}
	for answered := false; !answered; {
		select {
		case <-c.done:
			answered = true
		case <-c.part:
			readPart(read, cs.soFar(c), reply)
		case <-ctx.Done():
			select {
			case <-c.done: // both have happened: return the answer
				answered = true
			default:
				err := status.FromContextError(ctx.Err()).Err()
				if !cs.cancel(c.id) {
					return UnsentError{err}
				}
				return err
			}
		}
	}
	payload, err := c.payload, c.err
	select {
	case <-c.part: // it came with the answer, which is an error, or which an interceptor may make one
		readPart(read, payload, reply)
	default:
	}
	*c = call{done: c.done}
	cs.unused.Put(c)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(payload, reply); err != nil {
		return status.Errorf(codes.Internal, "unmarshalling the answer: %v", err)
	}
	return nil
}

// reserve reserves a place for a call, if there is one. A connection that has ended has none.
func (cs *Calls) reserve(payload int) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	l := cs.limits
	if cs.taken >= int(l.GetCalls()) || payload > int(l.GetPayload()) || payload+overhead > int(l.GetMessage()) || cs.bytes+payload > int(l.GetBytes()) {
		return false
	}
	cs.taken++
	cs.bytes += payload
	return true
}

// soFar returns the parts of the answer that have arrived.
func (cs *Calls) soFar(c *call) []byte {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.payload // later parts are appended and change none of these bytes
}

// unreserve returns a reserved place. The caller holds mu.
func (cs *Calls) unreserve(payload int) {
	cs.taken--
	cs.bytes -= payload
}

// send gives a call its id and sends it. It returns nil if the connection has ended.
func (cs *Calls) send(m *pb.Call) *call {
	cs.mu.Lock()
	if cs.limits.GetCalls() == 0 {
		cs.mu.Unlock() // the reserved place ends with the connection
		return nil
	}
	cs.last++
	cs.queued += uint64(size(m))
	c := cs.unused.Get().(*call)
	c.id, c.bytes, c.end = cs.last, len(m.GetPayload()), cs.queued
	m.Id = c.id
	if m.Early {
		c.part = make(chan struct{}, 1)
	}
	cs.calls[c.id] = c
	cs.waiting.calls = append(cs.waiting.calls, m)
	cs.put()
	return c
}

// cancel ends a call whose caller no longer waits. It returns false if the call was not sent:
// then it never is. Otherwise it notifies the plugin, and the call keeps its place until it is
// answered. The notice of a call that waits could overtake the call, which may have to wait
// for a later message.
func (cs *Calls) cancel(id uint64) (sent bool) {
	cs.mu.Lock()
	c, w := cs.calls[id], &cs.waiting
	if c == nil {
		cs.mu.Unlock()
		return true
	}
	byID := func(m *pb.Call, id uint64) int { return cmp.Compare(m.GetId(), id) }
	if i, waits := slices.BinarySearchFunc(w.calls, id, byID); waits {
		w.calls = slices.Delete(w.calls, i, i+1)
		delete(cs.calls, id)
		cs.unreserve(c.bytes)
		cs.mu.Unlock()
		return false
	}
	cs.queued += cancelSize
	w.cancels = append(w.cancels, id)
	cs.put()
	return true
}

// cancelSize bounds the size of a cancellation in a message, in bytes.
const cancelSize = 12

// put ensures that the waiting calls and cancels are sent. The caller holds mu; put unlocks it.
//
// A caller normally sends its own call: waking another goroutine takes longer than sending.
// But a plugin that does not read must not block a caller whose context ends. So a caller
// sends only while the socket is certain to accept the message, and one message only. An answer
// proves that the plugin has read everything up to its call.
func (cs *Calls) put() {
	defer cs.mu.Unlock()
	own := 1
	if cs.queued-cs.arrived > direct {
		own = 0
	}
	cs.out.Flush(own)
}

// direct bounds the bytes in transit to the plugin up to which a caller still sends its own
// call. A socket accepts 200 KiB before it blocks a sender, and a small message takes more
// than a KiB of that. So direct allows 80 of the smallest calls.
const direct = 8 << 10

// rest sends what callers may not send themselves: see put. The caller holds mu.
func (cs *Calls) rest(send func()) {
	if cs.limits != nil {
		cs.sender.Go(send)
	}
}

// sent reports whether more waits to be sent. If the connection has ended, read reports it, and what
// waits is never sent. The caller holds mu.
func (cs *Calls) sent(*pb.CarryRequest, error) (more bool) {
	return len(cs.waiting.calls)+len(cs.waiting.cancels) > 0
}

// batch takes what fits into one message, which is valid until the next call. The caller
// holds mu.
func (cs *Calls) batch() (m *pb.CarryRequest, any bool) {
	w := &cs.waiting
	room := int(cs.limits.GetMessage())
	cancels := min(len(w.cancels), room/2/cancelSize)
	room -= cancels * cancelSize
	n := 0
	for n < len(w.calls) && (n == 0 || size(w.calls[n]) <= room) {
		room -= size(w.calls[n])
		n++
	}
	m = &cs.message
	m.Calls = append(m.Calls[:0], w.calls[:n]...)
	m.Cancels = append(m.Cancels[:0], w.cancels[:cancels]...)
	w.calls, w.cancels = dropFirst(w.calls, n), dropFirst(w.cancels, cancels)
	return m, n+cancels > 0
}

// dropFirst removes the first n elements of a queue. It keeps the capacity for reuse, unless
// that is large.
func dropFirst[T any](waiting []T, n int) []T {
	left := copy(waiting, waiting[n:])
	clear(waiting[left:])
	if left == 0 && cap(waiting) > 64 {
		return nil
	}
	return waiting[:left]
}

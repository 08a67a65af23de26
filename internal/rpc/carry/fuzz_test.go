package carry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"google.golang.org/protobuf/proto"
)

// cut splits bytes into messages. Each begins with its length in one byte, so a fuzzer can
// make several, and some that do not parse.
func cut(b []byte) (messages [][]byte) {
	for len(b) > 0 {
		n := min(int(b[0]), len(b)-1)
		messages = append(messages, b[1:1+n])
		b = b[1+n:]
	}
	return messages
}

func joined(t testing.TB, messages ...proto.Message) (b []byte) {
	for _, m := range messages {
		one, err := proto.Marshal(m)
		if err != nil || len(one) > 255 {
			t.Fatal(len(one), err)
		}
		b = append(append(b, byte(len(one))), one...)
	}
	return b
}

// For any messages of a host, each accepted call is answered once, and a host that breaks the
// protocol is refused.
func FuzzPlugin(f *testing.F) {
	const method = "/zkrecipes.v1.PluginService/Info"
	one := &pb.CarryRequest{Calls: []*pb.Call{{Id: 1, Method: method, Metadata: map[string]string{"k": "v"}}}}
	f.Add(joined(f, one))
	f.Add(joined(f, one, one))
	f.Add(joined(f, one, &pb.CarryRequest{Cancels: []uint64{1}}, &pb.CarryRequest{Calls: []*pb.Call{{Id: 9, Method: "nonsense"}}}))
	f.Add(joined(f, &pb.CarryRequest{Cancels: []uint64{0, 2}}))
	f.Add(joined(f, &pb.CarryRequest{Calls: []*pb.Call{{Id: 1 << 63, Method: method, Payload: []byte{0xff}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewDispatcher(Config{})
		pb.RegisterPluginServiceServer(d, pb.UnimplementedPluginServiceServer{})
		answered := map[uint64]bool{}
		out := newOutbox(sink(func(m *pb.CarryResponse) {
			for _, a := range m.GetAnswers() {
				if answered[a.GetId()] {
					t.Errorf("call %d is answered again", a.GetId())
				}
				answered[a.GetId()] = true
			}
		}), nil)
		c := &carrier{Dispatcher: d, ctx: t.Context(), out: out, calls: make(map[uint64]context.CancelFunc)}
		var taken []uint64
		for _, message := range cut(b) {
			var m pb.CarryRequest
			if proto.Unmarshal(message, &m) != nil {
				break // the connection ends
			}
			before := c.last
			err := c.take(&m)
			c.workers.finish()
			c.workers.over = false
			for _, call := range m.GetCalls() {
				if call.GetId() > before && call.GetId() <= c.last {
					before = call.GetId()
					taken = append(taken, before)
				}
			}
			if err != nil {
				break
			}
			if !slices.IsSorted(ids(m.GetCalls())) || slices.Contains(ids(m.GetCalls()), 0) {
				t.Fatalf("calls %v were accepted", ids(m.GetCalls()))
			}
		}
		for _, id := range taken {
			if !answered[id] {
				t.Errorf("call %d is not answered", id)
			}
		}
		if len(answered) != len(taken) || len(c.calls) > 0 || c.bytes != 0 || out.bytes != 0 {
			t.Errorf("%d calls, %d answers; %d calls and %d bytes are left", len(taken), len(answered), len(c.calls), c.bytes+out.bytes)
		}
	})
}

func ids(calls []*pb.Call) (all []uint64) {
	for _, c := range calls {
		all = append(all, c.GetId())
	}
	return all
}

// For any messages of a plugin, each call ends once.
func FuzzHost(f *testing.F) {
	answers := func(a ...*pb.Answer) *pb.CarryResponse { return &pb.CarryResponse{Answers: a} }
	f.Add(joined(f, answers(&pb.Answer{Id: 1}, &pb.Answer{Id: 3, Payload: []byte("x"), More: true}), answers(&pb.Answer{Id: 3, Payload: []byte("y")})))
	f.Add(joined(f, answers(&pb.Answer{Id: 2}), answers(&pb.Answer{Id: 2})))
	f.Add(joined(f, answers(&pb.Answer{Id: 2, Status: []byte{8, 5}})))
	f.Add(joined(f, answers(&pb.Answer{Id: 2, Status: []byte{0xff}})))
	f.Add(joined(f, answers(&pb.Answer{Id: 4})))
	f.Add(joined(f, &pb.CarryResponse{Limits: &pb.Limits{Calls: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		cs := newCalls(New(nil, nil))
		cs.framed = sink(func(*pb.CarryResponse) {})
		cs.limits = limitsFor(0)
		var waiting []*call
		for range 3 {
			if !cs.reserve(0) {
				t.Fatal("no place")
			}
			waiting = append(waiting, cs.send(&pb.Call{}))
		}
		var err error
		for _, message := range cut(b) {
			var m pb.CarryResponse
			if err = proto.Unmarshal(message, &m); err == nil {
				err = cs.take(m.GetAnswers())
			}
			if err != nil {
				break
			}
		}
		cs.end(err)
		for _, c := range waiting {
			<-c.done // the call ends
			if len(c.done) > 0 {
				t.Error("a call ends twice")
			}
		}
		if len(cs.calls) > 0 {
			t.Errorf("%d calls are left", len(cs.calls))
		}
	})
}

// Any received bytes are a message, or end the connection with an error that distinguishes a
// broken protocol from a broken connection. A sent message arrives.
func FuzzFramed(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 2, 0x12, 0, 0, 0, 0, 1, 0xff})
	f.Add([]byte{0, 1, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFramed(&buffer{Buffer: *bytes.NewBuffer(b)}, 256)
		for read := 0; ; read++ {
			var m, again pb.CarryRequest
			if err := in.receive(&m); err != nil {
				ours := errors.Is(err, recipes.ErrInvalid) || errors.Is(err, recipes.ErrLimit)
				if ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); ours == ended || read > len(b) {
					t.Fatalf("after %d messages: %v", read, err)
				}
				return
			}
			loop := newFramed(new(buffer), 1<<10)
			if err := errors.Join(loop.send(&m), loop.receive(&again)); err != nil || !proto.Equal(&m, &again) {
				t.Fatalf("%v: %v, %v", err, &m, &again)
			}
		}
	})
}

// buffer is a connection that reads what it has written.
type buffer struct {
	net.Conn
	bytes.Buffer
}

func (b *buffer) Read(p []byte) (int, error)  { return b.Buffer.Read(p) }
func (b *buffer) Write(p []byte) (int, error) { return b.Buffer.Write(p) }

// sink is a connection that passes sent messages to f.
func sink(f func(*pb.CarryResponse)) *framed { return newFramed(writes{f: f}, 0) }

type writes struct {
	net.Conn
	f func(*pb.CarryResponse)
}

func (w writes) Write(p []byte) (int, error) {
	var m pb.CarryResponse
	err := proto.Unmarshal(p[lengthSize:], &m)
	w.f(&m)
	return len(p), err
}

// An answer no longer counts after it was sent, whether it was sent whole or in parts.
func TestSentAnswersDoNotCount(t *testing.T) {
	parts := 0
	o := newOutbox(sink(func(m *pb.CarryResponse) { parts += len(m.GetAnswers()) }), nil)
	o.put(&pb.Answer{Id: 1}, math.MaxInt)
	o.put(&pb.Answer{Id: 2, Payload: make([]byte, 5*part), Status: []byte("because")}, math.MaxInt)
	o.put(&pb.Answer{Id: 3, Status: []byte("because")}, math.MaxInt)
	if parts != 7 || o.bytes != 0 {
		t.Errorf("%d parts were sent, and %d bytes are left", parts, o.bytes)
	}
}

// The second message, with the answer of another call, is not sent before early returns.
func TestACallThatContinuesSendsNoAnswersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []uint64
		continues, c := make(chan struct{}), new(carrier)
		c.out = newOutbox(sink(func(m *pb.CarryResponse) {
			if sent = append(sent, m.GetAnswers()[0].GetId()); len(sent) == 1 {
				c.out.put(&pb.Answer{Id: 2}, math.MaxInt)
			} else {
				<-continues
			}
		}), c.workers.running.Go)
		c.inParts(1).early(&pb.Answer{})
		close(continues)
		c.workers.finish()
		if !slices.Equal(sent, []uint64{1, 2}) || c.out.out.sending || c.out.bytes != 0 {
			t.Errorf("sent %v; %d bytes are left", sent, c.out.bytes)
		}
	})
}

// The wait for sent answers ends with the connection, because no more are sent.
func TestAFailedOutboxEndsTheWait(t *testing.T) {
	o := newOutbox(sink(func(*pb.CarryResponse) {}), nil)
	o.bytes = MaxUnsent + 1
	o.mu.Lock()
	o.fail()
	o.mu.Unlock()
	o.awaitSpace()
}

// Neither a plugin's configuration nor its first message exceeds what a connection is made for.
func TestLimitsOfAConnection(t *testing.T) {
	most := &pb.Limits{Calls: MaxCalls, Bytes: MaxBytes, Payload: MaxPayload, Message: maxMessage}
	tiny := &pb.Limits{Calls: MaxCalls, Bytes: MaxBytes, Message: overhead / 2}
	huge := &pb.Limits{Calls: 1 << 30, Bytes: 1 << 30, Payload: 1 << 30, Message: 1 << 30}
	for got, want := range map[*pb.Limits]*pb.Limits{limitsFor(0): most, limitsFor(1 << 30): most, limitsFor(overhead / 2): tiny, limits(huge): most, limits(tiny): tiny} {
		if !proto.Equal(got, want) {
			t.Errorf("%v; want %v", got, want)
		}
	}
}

// A call may be answered while its caller cancels it. Nothing is sent then.
func TestACancellationAfterTheAnswer(t *testing.T) {
	cs := newCalls(nil)
	cs.cancel(1)
	if !cs.mu.TryLock() || len(cs.waiting.cancels) > 0 {
		t.Error("the connection is blocked, or sends the cancellation")
	}
}

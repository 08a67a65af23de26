package carry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// wide are limits that no test reaches.
var wide = &pb.Limits{Calls: 1 << 10, Bytes: 16 << 20, Payload: 32 << 10, Message: 64 << 10}

// A call beyond the limits is made as a gRPC call.
func TestFullConnectionRefusesNoCall(t *testing.T) {
	received, release := make(chan struct{}), make(chan struct{})
	p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{Limits: &pb.Limits{Calls: 2, Bytes: 1 << 20, Payload: 8 << 10, Message: 4 << 10}})
		for n := 0; n < 2; {
			m, err := f.Recv()
			if err != nil || proto.Size(m) > 2<<10 {
				return errors.Join(err, errors.New("a large message"))
			}
			n += len(m.GetCalls())
		}
		close(received)
		<-release
		_ = f.Send(&pb.CarryResponse{Answers: []*pb.Answer{{Id: 2}, {Id: 1}}})
		<-f.Context().Done()
		return nil
	}})
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Data: make([]byte, 3<<10)}); err != nil || p.unary.get() != 1 {
		t.Fatalf("a payload that a message has no room for: %v, %d gRPC calls", err, p.unary.get())
	}
	var two sync.WaitGroup
	for range 2 {
		two.Go(func() {
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
	closes(t, "the calls", received)
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() != 2 {
		t.Error(err, p.unary.get())
	}
	close(release)
	two.Wait()
}

// The end of the caller's context ends its call.
func TestPluginThatDoesNotReadBlocksNoCaller(t *testing.T) {
	p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{Limits: wide})
		<-f.ctx.Done() // the test has ended
		return nil
	}})
	for _, size := range []int{0, 20 << 10} {
		for range 30 { // more than a socket buffers without a reader
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			if _, err := p.Acquire(ctx, &pb.AcquireRequest{Data: make([]byte, size)}); status.Code(err) != codes.DeadlineExceeded {
				t.Error(err)
			}
			cancel()
		}
	}
	if n := p.unary.get(); n > 0 {
		t.Errorf("%d gRPC calls", n)
	}
}

// A waiting call fails with an unknown outcome, and Err returns how the protocol was broken.
// Further calls are made over gRPC.
func TestPluginThatBreaksTheRulesIsGivenUp(t *testing.T) {
	answer := func(a ...*pb.Answer) *pb.CarryResponse { return &pb.CarryResponse{Answers: a} }
	raw := func(b ...byte) *pb.CarryResponse {
		m := new(pb.CarryResponse)
		m.ProtoReflect().SetUnknown(b)
		return m
	}
	refusal := wire.ToStatus(recipes.ErrInvalid)
	for name, test := range map[string]struct {
		says []*pb.CarryResponse // after the first call
		ends error
		want error // nil if it is not broken
	}{
		"an answer to nobody":         {says: []*pb.CarryResponse{answer(&pb.Answer{Id: 2})}, want: recipes.ErrInternal},
		"an answer without id":        {says: []*pb.CarryResponse{answer(&pb.Answer{})}, want: recipes.ErrInternal},
		"more of an error":            {says: []*pb.CarryResponse{answer(&pb.Answer{Id: 1, More: true, Status: []byte{8, 1}})}, want: recipes.ErrInternal},
		"a long message":              {says: []*pb.CarryResponse{raw(0, 0x10, 0, 1)}, want: recipes.ErrInternal},
		"no message":                  {says: []*pb.CarryResponse{raw(0, 0, 0, 1, 0xff)}, want: recipes.ErrInternal},
		"limits again":                {says: []*pb.CarryResponse{{Limits: wide}}, want: recipes.ErrInternal},
		"an end":                      {}, // the plugin dies
		"a refusal":                   {ends: refusal, want: recipes.ErrInvalid},
		"an end of the transport":     {ends: status.Error(codes.Unavailable, "gone")},
		"an end that gRPC has chosen": {ends: status.Error(codes.ResourceExhausted, "too large")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
				_ = f.Send(&pb.CarryResponse{Limits: wide})
				if _, err := f.Recv(); err != nil {
					return err
				}
				for _, m := range test.says {
					_ = f.Send(m)
				}
				if len(test.says) > 0 {
					<-f.Context().Done() // the host closes the connection
				}
				return test.ends
			}})
			_, err := p.Acquire(bounded(t), &pb.AcquireRequest{})
			if _, said := wire.Error(err); status.Code(err) != codes.Unavailable || said {
				t.Errorf("the call: %v, %v", err, said)
			}
			if test.want != nil {
				closes(t, "the end of the connection", p.calls.Broken())
				if err := p.calls.Err(); !errors.Is(err, test.want) || !errors.Is(err, recipes.ErrPluginLost) {
					t.Error(err)
				}
			} else if err := p.calls.Err(); err != nil {
				t.Error(err)
			}
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() != 1 {
				t.Error(err, p.unary.get())
			}
		})
	}
}

func TestFirstMessageHasLimits(t *testing.T) {
	p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{})
		<-f.Context().Done()
		return nil
	}})
	closes(t, "the end of the connection", p.calls.Broken())
	if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() != 1 {
		t.Error(err)
	}
}

// The host gets a typed error. Its calls are cancelled, and the plugin continues.
func TestHostThatBreaksTheRulesIsRefused(t *testing.T) {
	const method = "/zkrecipes.v1.GrantService/Acquire"
	call := func(id uint64, payload int) *pb.Call {
		return &pb.Call{Id: id, Method: method, Payload: make([]byte, payload)}
	}
	calls := func(c ...*pb.Call) *pb.CarryRequest { return &pb.CarryRequest{Calls: c} }
	var many []*pb.CarryRequest
	for i := range uint64(16<<10 + 1) {
		many = append(many, calls(call(i+1, 0)))
	}
	var heavy []*pb.CarryRequest
	for i := range uint64(16<<20/(32<<10) + 1) {
		heavy = append(heavy, calls(&pb.Call{Id: i + 1, Method: method, Payload: large}))
	}
	raw := func(b ...byte) []*pb.CarryRequest {
		m := new(pb.CarryRequest)
		m.ProtoReflect().SetUnknown(b)
		return []*pb.CarryRequest{m}
	}
	for name, test := range map[string]struct {
		sends []*pb.CarryRequest
		want  error
	}{
		"a long message":       {raw(0, 1, 0, 1), recipes.ErrLimit},
		"a length without end": {raw(0xff, 0xff, 0xff, 0xff), recipes.ErrLimit},
		"no message":           {raw(0, 0, 0, 1, 0xff), recipes.ErrInvalid},
		"no id":                {[]*pb.CarryRequest{calls(call(0, 0))}, recipes.ErrInvalid},
		"an id again":          {[]*pb.CarryRequest{calls(call(7, 0)), calls(call(7, 0))}, recipes.ErrInvalid},
		"a smaller id":         {[]*pb.CarryRequest{calls(call(7, 0), call(6, 0))}, recipes.ErrInvalid},
		"cancelled before":     {[]*pb.CarryRequest{{Cancels: []uint64{1}}}, recipes.ErrInvalid},
		"cancels nothing":      {[]*pb.CarryRequest{{Cancels: []uint64{0}}}, recipes.ErrInvalid},
		"a large payload":      {[]*pb.CarryRequest{calls(call(1, 32<<10+1))}, recipes.ErrLimit},
		"many calls":           {many, recipes.ErrLimit},
		"many bytes":           {heavy, recipes.ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			var running sync.WaitGroup
			p := newPair(t, setting{acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
				if r.GetPath() == "free" {
					return echo(ctx, r)
				}
				running.Add(1)
				defer running.Done()
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			f := p.host(t)
			for _, m := range test.sends {
				if f.sendRaw(m) != nil {
					break // the connection has ended
				}
			}
			var m pb.CarryResponse
			for len(m.GetStatus()) == 0 {
				must.Do(t, f.receive(&m))
			}
			var s spb.Status
			must.Do(t, proto.Unmarshal(m.GetStatus(), &s))
			if err, said := wire.Error(status.ErrorProto(&s)); !said || !errors.Is(err, test.want) {
				t.Error(err)
			}
			if err := f.receive(&m); err == nil {
				t.Error("the connection was not ended")
			}
			running.Wait()
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Path: "free"}); err != nil || p.unary.get() > 0 {
				t.Errorf("another connection: %v", err)
			}
		})
	}
}

// large is a request of the largest size that is carried.
var large = func() []byte {
	b, err := proto.Marshal(&pb.AcquireRequest{Data: make([]byte, 32<<10-4)})
	if err != nil || len(b) != 32<<10 {
		panic(len(b))
	}
	return b
}()

// A host may cancel a call while the plugin answers it, or call a method of a newer plugin.
func TestACancellationMayCrossWithItsAnswer(t *testing.T) {
	p := newPair(t, setting{acquire: echo})
	f := p.host(t)
	say := func(m *pb.CarryRequest) *pb.Answer {
		t.Helper()
		must.Do(t, f.send(m))
		for {
			var m pb.CarryResponse
			must.Do(t, f.receive(&m))
			if a := m.GetAnswers(); len(a) > 0 {
				return a[0]
			}
		}
	}
	a := say(&pb.CarryRequest{Calls: []*pb.Call{{Id: 5, Method: "/zkrecipes.v1.GrantService/Acquire"}}})
	if a.GetId() != 5 || len(a.GetStatus()) > 0 {
		t.Error(a)
	}
	a = say(&pb.CarryRequest{Cancels: []uint64{5, 1}, Calls: []*pb.Call{{Id: 9, Method: "nonsense"}}})
	if a.GetId() != 9 || len(a.GetStatus()) == 0 {
		t.Error(a)
	}
	a = say(&pb.CarryRequest{Calls: []*pb.Call{{Id: 10, Method: "/zkrecipes.v1.GrantService/Acquire", Payload: []byte{1}}}})
	if a.GetId() != 10 || len(a.GetStatus()) == 0 {
		t.Errorf("an invalid payload: %v", a)
	}
}

// An answered call frees its place, even if its caller did not wait for the answer.
func TestAnsweredCallFreesItsPlace(t *testing.T) {
	first := make(chan struct{})
	p := newPair(t, setting{acquire: echo, script: func(f *frames) error {
		_ = f.Send(&pb.CarryResponse{Limits: &pb.Limits{Calls: 1, Bytes: 1 << 10, Payload: 1 << 10, Message: 4 << 10}})
		for {
			m, err := f.Recv()
			if err != nil {
				return err
			}
			ids := m.GetCancels()
			for _, c := range m.GetCalls() {
				if c.GetId() > 1 {
					ids = append(ids, c.GetId())
				} else {
					close(first)
				}
			}
			for _, id := range ids {
				_ = f.Send(&pb.CarryResponse{Answers: []*pb.Answer{{Id: id}}})
			}
		}
	}})
	ctx, cancel := context.WithCancel(bounded(t))
	go func() { closes(t, "the first call", first); cancel() }()
	if _, err := p.Acquire(ctx, &pb.AcquireRequest{Data: make([]byte, 800)}); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	call := func() (carried bool) {
		t.Helper()
		before := p.unary.get()
		must.Get(p.Acquire(bounded(t), &pb.AcquireRequest{Data: make([]byte, 800)}))(t)
		return p.unary.get() == before
	}
	for !call() { // until the answer to the cancelled call has come
	}
	for range 5 {
		if !call() {
			t.Error("a call that was answered takes room")
		}
	}
}

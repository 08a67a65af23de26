package carry_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// locks is a service with one method.
type locks struct {
	pb.UnimplementedGrantServiceServer
	acquire func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error)
}

func (l locks) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	return l.acquire(ctx, r)
}

// parts is a service with the method Call.
type parts struct {
	pb.UnimplementedPluginServiceServer
	calls *carry.Dispatcher
}

func (p parts) Call(r *pb.CallRequest, st grpc.ServerStreamingServer[pb.CallResponse]) error {
	return p.calls.ServeInParts(r, st)
}

// echo answers with the request's data.
func echo(_ context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	return &pb.AcquireResponse{Grant: &pb.Grant{Znode: string(r.GetData())}}, nil
}

// pair is a host and a plugin.
type pair struct {
	pb.GrantServiceClient
	conn       *carry.Conn
	calls      *carry.Calls
	unary      *counter // calls made over gRPC, also by PluginService.Call
	socket     net.Listener
	cancelConn context.CancelFunc // ends the connection
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() { c.mu.Lock(); c.n++; c.mu.Unlock() }
func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

type setting struct {
	acquire func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error)
	carry   carry.Config
	script  func(*frames) error     // replaces the Dispatcher
	none    bool                    // no connection for calls
	dialer  carry.Dialer            // replaces the pair's
	wrap    func(net.Conn) net.Conn // the host's end of the connection
	host    stats.Handler
}

func newPair(t *testing.T, s setting) *pair {
	t.Helper()
	p := &pair{unary: new(counter)}
	d := carry.NewDispatcher(s.carry)
	served := []grpc.ServerOption{grpc.WaitForHandlers(true), grpc.UnaryInterceptor(
		func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			p.unary.add()
			return handle(ctx, r)
		}), grpc.StreamInterceptor(func(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		p.unary.add()
		return handle(srv, st)
	})}
	dial := []grpc.DialOption{carry.DialOption(s.host)}
	if s.host != nil {
		served, dial = append(served, grpc.StatsHandler(s.carry.Stats)), append(dial, grpc.WithStatsHandler(s.host))
	}
	g := grpc.NewServer(served...)
	service := locks{acquire: s.acquire}
	pb.RegisterGrantServiceServer(g, service)
	pb.RegisterGrantServiceServer(d, service)
	pb.RegisterPluginServiceServer(g, parts{calls: d})
	l := bufconn.Listen(1 << 16)
	var running sync.WaitGroup
	running.Go(func() { _ = g.Serve(l) })
	conn := must.Get(grpc.NewClient("passthrough:///test", append(dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...))(t)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancelConn = cancel
	serving, stop := context.WithCancel(context.Background())
	defer t.Cleanup(stop) // runs before the cleanup below, which waits for it
	p.socket = listen(t, serving, &running, d, s.script)
	switch {
	case s.dialer != nil:
		p.conn = carry.New(conn, s.dialer)
	case s.none:
		p.conn = carry.New(conn, nil)
	case s.wrap != nil:
		p.conn = carry.New(conn, func(ctx context.Context) (net.Conn, error) {
			conn, err := p.dial(ctx)
			return s.wrap(conn), err
		})
	default:
		p.conn = carry.New(conn, p.dial)
	}
	p.GrantServiceClient = pb.NewGrantServiceClient(p.conn)
	calls, fresh := p.conn.Start()
	if fresh == s.none {
		t.Fatalf("Start returns a new connection: %v", fresh)
	}
	p.calls = calls
	if fresh {
		running.Go(func() { calls.Run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		_ = conn.Close()
		_ = p.socket.Close()
		g.Stop()
		running.Wait()
	})
	closes(t, "Settled", calls.Settled())
	return p
}

func bounded(t testing.TB) context.Context { t.Helper(); return watchdog.Bounded(t) }

func closes(t testing.TB, what string, ch <-chan struct{}) { t.Helper(); watchdog.Closes(t, what, ch) }

// everyWay runs a test with carried calls, and with gRPC calls.
func everyWay(t *testing.T, s setting, test func(*testing.T, *pair)) {
	t.Helper()
	for _, way := range []string{"connection", "unary"} {
		t.Run(way, func(t *testing.T) {
			s.none = way == "unary"
			p := newPair(t, s)
			test(t, p)
			if got := p.unary.get() > 0; got != s.none {
				t.Errorf("%d gRPC calls", p.unary.get())
			}
		})
	}
}

func TestAnswerIsTheServices(t *testing.T) {
	everyWay(t, setting{acquire: echo}, func(t *testing.T, p *pair) {
		var all sync.WaitGroup
		for _, data := range []string{"", "a", strings.Repeat("b", 20<<10)} {
			for range 50 {
				all.Go(func() {
					if a, err := p.Acquire(bounded(t), &pb.AcquireRequest{Data: []byte(data)}); err != nil || a.GetGrant().GetZnode() != data {
						t.Errorf("%.20s: %.20v, %v", data, a, err)
					}
				})
			}
		}
		all.Wait()
	})
}

func TestErrorKeepsItsDetails(t *testing.T) {
	s := must.Get(status.New(codes.Aborted, "because").WithDetails(&errdetails.ErrorInfo{Reason: "R", Metadata: map[string]string{"k": "v"}}))(t)
	for _, want := range []error{s.Err(), status.Error(codes.NotFound, ""), context.Canceled, context.DeadlineExceeded, bytes.ErrTooLarge} {
		fail := func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) { return nil, want }
		var got []error
		everyWay(t, setting{acquire: fail}, func(t *testing.T, p *pair) {
			_, err := p.Acquire(bounded(t), &pb.AcquireRequest{})
			got = append(got, err)
		})
		for _, other := range got[1:] {
			if a, b := status.Convert(got[0]).Proto(), status.Convert(other).Proto(); !proto.Equal(a, b) {
				t.Errorf("%v: %v and %v", want, a, b)
			}
		}
	}
}

func TestMethodThatThePluginLacks(t *testing.T) {
	var got []error
	everyWay(t, setting{acquire: echo}, func(t *testing.T, p *pair) {
		_, err := pb.NewElectionServiceClient(p.conn).Leader(bounded(t), &pb.LeaderRequest{})
		got = append(got, err, p.conn.Invoke(bounded(t), "/zkrecipes.v1.GrantService/Steal", &pb.AcquireRequest{}, &pb.AcquireResponse{}))
		_, _ = p.Acquire(bounded(t), &pb.AcquireRequest{}) // gRPC counts no unknown methods
	})
	for i := range 2 {
		if a, b := status.Convert(got[i]), status.Convert(got[i+2]); a.Code() != codes.Unimplemented || a.Code() != b.Code() {
			t.Errorf("%v and %v", a, b)
		}
	}
}

func TestMetadataAndDeadlineReachTheService(t *testing.T) {
	deadline := time.Now().Add(time.Hour)
	look := func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		end, _ := ctx.Deadline()
		if d := end.Sub(deadline).Abs(); d > time.Minute {
			t.Errorf("the deadline is off by %v", d)
		}
		md, _ := metadata.FromIncomingContext(ctx)
		return &pb.AcquireResponse{Grant: &pb.Grant{Znode: strings.Join(md.Get("traceparent"), ",")}}, nil
	}
	everyWay(t, setting{acquire: look}, func(t *testing.T, p *pair) {
		ctx, cancel := context.WithDeadline(metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-x"), deadline)
		defer cancel()
		if a, err := p.Acquire(ctx, &pb.AcquireRequest{}); err != nil || a.GetGrant().GetZnode() != "00-x" {
			t.Error(a, err)
		}
	})
}

// measured lists the events of calls that a stats handler gets. Carried calls have no headers.
type measured struct {
	client bool // it belongs to the host
	mu     sync.Mutex
	events []string
	served time.Time // in a call, when its service had run
}

func (m *measured) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, m, fmt.Sprint(info.FullMethodName, info.FailFast))
}
func (*measured) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*measured) HandleConn(context.Context, stats.ConnStats)                       {}

func (m *measured) HandleRPC(ctx context.Context, s stats.RPCStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := ctx.Value(m); got != fmt.Sprint(pb.GrantService_Acquire_FullMethodName, m.client) || s.IsClient() != m.client {
		m.events = append(m.events, fmt.Sprint("of ", got, " at the host: ", s.IsClient()))
	}
	switch s := s.(type) {
	case *stats.Begin:
		m.events = append(m.events, fmt.Sprint("begin ", s.FailFast))
	case *stats.InPayload:
		m.events = append(m.events, "in")
	case *stats.OutPayload:
		m.events = append(m.events, "out")
	case *stats.End:
		m.events = append(m.events, fmt.Sprint("end ", status.Code(s.Error), " ", m.served.After(s.BeginTime) && s.EndTime.After(m.served)))
	}
}

// The stats handlers of both sides get the same events for a carried call as for a gRPC call.
func TestACarriedCallIsMeasured(t *testing.T) {
	for _, test := range []struct {
		answer       error
		host, plugin string
	}{
		{nil, "begin true out in end OK true", "begin false in out end OK true"},
		{status.Error(codes.NotFound, "no"), "begin true out end NotFound true", "begin false in end NotFound true"},
	} {
		host, plugin := &measured{client: true}, new(measured)
		s := setting{host: host, carry: carry.Config{Stats: plugin}, acquire: func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
			for _, m := range []*measured{host, plugin} {
				m.mu.Lock()
				m.served = time.Now()
				m.mu.Unlock()
			}
			return &pb.AcquireResponse{}, test.answer
		}}
		everyWay(t, s, func(t *testing.T, p *pair) { _, _ = p.Acquire(bounded(t), &pb.AcquireRequest{}) })
		for m, want := range map[*measured]string{host: test.host, plugin: test.plugin} {
			if got := strings.Join(m.events, " "); got != want+" "+want {
				t.Errorf("%q; want %q of each way", got, want)
			}
		}
	}
}

// placeAt returns a part of an answer.
func placeAt(position int32) *pb.AcquireResponse {
	return &pb.AcquireResponse{Place: &pb.Place{Position: position}}
}

// The part is read in the caller's goroutine, and then the whole answer, which contains it too.
// Parts sent after the end of the call are dropped.
func TestEarlyPartIsReadWhileTheCallContinues(t *testing.T) {
	proceed := make(chan struct{}, 1)
	var kept func(proto.Message)
	s := setting{acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		if r.GetPath() == "plain" {
			if carry.Early(ctx) != nil {
				t.Error("the plugin can send a part that the host would not read")
			}
			return echo(ctx, r)
		}
		if kept = carry.Early(ctx); kept != nil {
			kept(placeAt(7))
			<-proceed
		}
		if r.GetPath() == "fails" {
			return nil, status.Error(codes.NotFound, "no")
		}
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5}, Place: &pb.Place{Position: 7}}, nil
	}}
	everyWay(t, s, func(t *testing.T, p *pair) {
		for _, path := range []string{"", "fails"} {
			var read []string
			ctx := carry.WithEarly(bounded(t), func(part proto.Message) {
				a := part.(*pb.AcquireResponse)
				if read = append(read, fmt.Sprint(a.GetPlace().GetPosition(), a.GetGrant().GetToken())); len(read) == 1 {
					proceed <- struct{}{}
				}
			})
			a, err := p.Acquire(ctx, &pb.AcquireRequest{Path: path})
			if path == "" && (err != nil || a.GetGrant().GetToken() != 5 || a.GetPlace().GetPosition() != 7) ||
				path == "fails" && status.Code(err) != codes.NotFound {
				t.Error(a, err)
			}
			want := []string{"7 0", "7 5"}
			if err != nil {
				want = want[:1]
			}
			if read = slices.Compact(read); !slices.Equal(read, want) { // the whole answer may come twice
				t.Errorf("read %q; want %q", read, want)
			}
			kept(placeAt(8))
		}
		if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Path: "plain"}); err != nil {
			t.Error(err)
		}
		select {
		case <-p.calls.Broken():
			t.Error(p.calls.Err())
		default:
		}
	})
}

// The caller does not wait for the cancellation.
func TestCancelledCallIsCancelledInThePlugin(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}
	everyWay(t, setting{acquire: wait}, func(t *testing.T, p *pair) {
		ctx, cancel := context.WithCancel(bounded(t))
		go func() { closes(t, "the call", began); cancel() }()
		if _, err := p.Acquire(ctx, &pb.AcquireRequest{}); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		closes(t, "the end of the call in the plugin", ended)
	})
}

func TestDeadlineEndsTheCallAndItsService(t *testing.T) {
	var running sync.WaitGroup
	var reached counter
	wait := func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		running.Add(1)
		defer running.Done()
		reached.add()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	everyWay(t, setting{acquire: wait}, func(t *testing.T, p *pair) {
		before := reached.get()
		for timeout := 20 * time.Millisecond; reached.get() == before; timeout *= 2 { // a busy machine needs more
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if _, err := p.Acquire(ctx, &pb.AcquireRequest{}); status.Code(err) != codes.DeadlineExceeded {
				t.Fatal(err)
			}
		}
	})
	running.Wait()
}

// A long answer does not delay other calls either.
func TestWaitingCallDelaysNoOther(t *testing.T) {
	const waiting = 500
	release := make(chan struct{})
	long := strings.Repeat("x", 1<<20)
	p := newPair(t, setting{acquire: func(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		switch r.GetPath() {
		case "wait":
			<-release
		case "long":
			return &pb.AcquireResponse{Grant: &pb.Grant{Znode: long}}, nil
		}
		return echo(ctx, r)
	}})
	var all sync.WaitGroup
	for range waiting {
		all.Go(func() {
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Path: "wait", Data: make([]byte, 200)}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() {
				if a, err := p.Acquire(bounded(t), &pb.AcquireRequest{Path: "long"}); err != nil || a.GetGrant().GetZnode() != long {
					t.Errorf("%d bytes, %v", len(a.GetGrant().GetZnode()), err)
				}
			})
		}
		for range 10 {
			if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{Data: make([]byte, 200)}); err != nil {
				t.Error(err)
			}
		}
		others.Wait()
	}
	close(release)
	all.Wait()
	if n := p.unary.get(); n > 0 {
		t.Errorf("%d gRPC calls", n)
	}
}

// gRPC makes calls with large requests, with metadata of a kind that is not carried, and with
// options of gRPC.
func TestCallsThatCannotBeCarriedUseGRPC(t *testing.T) {
	p := newPair(t, setting{acquire: echo})
	var header metadata.MD
	for name, call := range map[string]func(context.Context) error{
		"large": func(ctx context.Context) error {
			_, err := p.Acquire(ctx, &pb.AcquireRequest{Data: bytes.Repeat([]byte("x"), 33<<10)})
			return err
		},
		"two values": func(ctx context.Context) error {
			_, err := p.Acquire(metadata.AppendToOutgoingContext(ctx, "a", "1", "a", "2"), &pb.AcquireRequest{})
			return err
		},
		"binary": func(ctx context.Context) error {
			_, err := p.Acquire(metadata.AppendToOutgoingContext(ctx, "a-bin", "1"), &pb.AcquireRequest{})
			return err
		},
		"much metadata": func(ctx context.Context) error {
			_, err := p.Acquire(metadata.AppendToOutgoingContext(ctx, "a", strings.Repeat("1", 2<<10)), &pb.AcquireRequest{})
			return err
		},
		"option": func(ctx context.Context) error {
			_, err := p.Acquire(ctx, &pb.AcquireRequest{}, grpc.Header(&header))
			return err
		},
	} {
		before := p.unary.get()
		if err := call(bounded(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p.unary.get() != before+1 {
			t.Errorf("%s: it was carried", name)
		}
	}
}

// gRPC refuses such metadata. The connection cannot carry it, and continues without it.
func TestMetadataThatIsNotUTF8IsNotCarried(t *testing.T) {
	for _, size := range []int{10, 20 << 10} {
		p := newPair(t, setting{acquire: echo})
		bad := metadata.AppendToOutgoingContext(bounded(t), "who", "Jos\xe9")
		_, _ = p.Acquire(bad, &pb.AcquireRequest{Data: bytes.Repeat([]byte("x"), size)})
		before := p.unary.get()
		if _, err := p.Acquire(bounded(t), &pb.AcquireRequest{}); err != nil || p.unary.get() != before {
			t.Errorf("%d bytes: the next call: %v", size, err)
		}
	}
}

// A thousand waiting calls are common. Their requests are no longer needed.
func TestACallThatWaitsKeepsNothingOfItsRequest(t *testing.T) {
	const calls, size = 40, 30 << 10
	var waiting, all sync.WaitGroup
	proceed := make(chan struct{})
	s := setting{acquire: func(context.Context, *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		waiting.Done()
		<-proceed
		return &pb.AcquireResponse{}, nil
	}}
	p := newPair(t, s)
	r := &pb.AcquireRequest{Data: make([]byte, size)}
	before := heap()
	for range calls {
		waiting.Add(1)
		all.Go(func() { _, _ = p.Acquire(bounded(t), r) })
	}
	waiting.Wait()
	ctx := bounded(t)
	for grown := heap() - before; grown > calls*size/2; grown = heap() - before {
		if ctx.Err() != nil { // until then, on a busy machine, some goroutines may not wait yet
			t.Errorf("%d calls of %d bytes keep %d", calls, size, grown)
			break
		}
	}
	close(proceed)
	all.Wait()
}

// heap returns the bytes in use after garbage collections: the second frees the contents of
// pools.
func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// A long part would have to be cut, and the whole answer could arrive before the part's end.
func TestEarlyPartThatIsLongIsLeftOut(t *testing.T) {
	long := recipes.Place{Znode: strings.Repeat("x", 40<<10), Position: 1}
	s := setting{acquire: func(ctx context.Context, _ *pb.AcquireRequest) (*pb.AcquireResponse, error) {
		if early := carry.Early(ctx); early != nil {
			early(&pb.AcquireResponse{Place: wire.ToPlace(long)})
		}
		return &pb.AcquireResponse{Grant: &pb.Grant{Token: 5}}, nil
	}}
	everyWay(t, s, func(t *testing.T, p *pair) {
		for range 3 {
			a, err := p.Acquire(carry.WithEarly(bounded(t), func(proto.Message) {}), &pb.AcquireRequest{})
			if err != nil || a.GetGrant().GetToken() != 5 || a.GetPlace() != nil {
				t.Error(a.GetGrant(), err)
			}
		}
	})
}

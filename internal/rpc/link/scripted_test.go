package link_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	rpclink "github.com/zkrecipes/zkrecipes/internal/rpc/link"
	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
)

type leaseStream = grpc.BidiStreamingServer[pb.OpenRequest, pb.OpenResponse]

// scripted is a plugin whose behaviour the test defines.
type scripted struct {
	pb.UnimplementedSessionServiceServer
	pb.UnimplementedGrantServiceServer
	pb.UnimplementedTransactionServiceServer
	pb.UnimplementedQueueServiceServer
	pb.UnimplementedPluginServiceServer
	calls *carry.Dispatcher // of its services

	place   *pb.Place                           // of the contenders of acquire; may be nil
	open    func(leaseStream, *pb.Resume) error // after Start
	acquire func(*pb.AcquireRequest) (*pb.AcquireResponse, error)
	receive func(*pb.ReceiveElementsRequest) (*pb.ReceiveElementsResponse, error)
	begin   func(*pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error)
	detach  func(context.Context) error
	write   func() error // may be nil
	drop    func()       // may be nil

	abandoned chan string // may be nil
	acquired  func()      // is called when the host has the answer to Acquire or BeginTransaction; may be nil
}

func (s *scripted) Open(st leaseStream) error {
	m, err := st.Recv()
	if err != nil {
		return err
	}
	return s.open(st, m.GetStart().GetResume())
}

func (s *scripted) Acquire(ctx context.Context, r *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	if s.place != nil {
		carry.Early(ctx)(&pb.AcquireResponse{Place: s.place})
	}
	return s.acquire(r)
}

func (s *scripted) Call(r *pb.CallRequest, st grpc.ServerStreamingServer[pb.CallResponse]) error {
	return s.calls.ServeInParts(r, st)
}

func (s *scripted) ReceiveElements(_ context.Context, r *pb.ReceiveElementsRequest) (*pb.ReceiveElementsResponse, error) {
	return s.receive(r)
}

func (s *scripted) BeginTransaction(_ context.Context, r *pb.BeginTransactionRequest) (*pb.BeginTransactionResponse, error) {
	return s.begin(r)
}

func (s *scripted) Abandon(_ context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	s.abandoned <- r.GetRequestId()
	return &pb.AbandonResponse{}, nil
}

func (s *scripted) Detach(ctx context.Context, _ *pb.DetachRequest) (*pb.DetachResponse, error) {
	return &pb.DetachResponse{}, s.detach(ctx)
}

func (s *scripted) Write(ctx context.Context, r *pb.WriteRequest) (*pb.WriteResponse, error) {
	if s.write == nil {
		return s.UnimplementedGrantServiceServer.Write(ctx, r)
	}
	return &pb.WriteResponse{}, s.write()
}

func (s *scripted) DropRest(context.Context, *pb.DropRestRequest) (*pb.DropRestResponse, error) {
	if s.drop != nil {
		s.drop()
	}
	return &pb.DropRestResponse{}, nil
}

func (s *scripted) intercept(ctx context.Context, method string, r, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, r, reply, cc, opts...)
	asks := method == pb.GrantService_Acquire_FullMethodName || method == pb.TransactionService_BeginTransaction_FullMethodName
	if asks && s.acquired != nil {
		s.acquired()
	}
	return err
}

// serves answers with a session of that timeout, and echoes heartbeats.
func serves(timeout time.Duration) func(leaseStream, *pb.Resume) error {
	return func(st leaseStream, _ *pb.Resume) error {
		err := st.Send(opened(timeout))
		for err == nil {
			var m *pb.OpenRequest
			if m, err = st.Recv(); err != nil {
				break
			}
			err = st.Send(&pb.OpenResponse{Message: &pb.OpenResponse_BeatEcho{BeatEcho: &pb.BeatEcho{Number: m.GetBeat().GetNumber()}}})
		}
		return err
	}
}

func opened(timeout time.Duration) *pb.OpenResponse {
	return &pb.OpenResponse{Message: &pb.OpenResponse_Opened{Opened: &pb.Opened{
		Session: "s", SessionId: 7, Timeout: durationpb.New(timeout), State: pb.State_STATE_CONNECTED, Ticket: []byte("ticket"),
	}}}
}

// play makes c use a plugin that plays s. kill ends its process.
func play(t *testing.T, c *rpclink.Client, s *scripted) (p *rpclink.Plugin, kill func()) {
	t.Helper()
	byGRPC(t)
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer()
	s.calls = carry.NewDispatcher(carry.Config{})
	for _, r := range []grpc.ServiceRegistrar{g, s.calls} {
		pb.RegisterSessionServiceServer(r, s)
		pb.RegisterGrantServiceServer(r, s)
		pb.RegisterTransactionServiceServer(r, s)
		pb.RegisterQueueServiceServer(r, s)
		pb.RegisterPluginServiceServer(r, s)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(listener) })
	conn := must.Get(grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithUnaryInterceptor(s.intercept), carry.DialOption(nil)))(t)
	p = c.Connect(conn, nil, func(context.Context) bool { return true })
	c.Use(p, true)
	kill = sync.OnceFunc(func() {
		g.Stop()
		serving.Wait()
		patient, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p.ProcessEnded(patient)
		_ = conn.Close()
	})
	t.Cleanup(func() { c.Close(); kill() })
	return p, kill
}

func openScripted(t *testing.T, c *rpclink.Client) recipes.Client {
	t.Helper()
	return must.Get(c.Open(ctx(t), recipes.SessionConfig{Servers: []string{"scripted"}}))(t)
}

func next[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-ctx(t).Done():
		t.Fatal("nothing came")
	}
	return v
}

// until reads events up to one with that state.
func until(t *testing.T, s recipes.Session, state recipes.State) {
	t.Helper()
	for e := range s.Events(ctx(t)) {
		if e.State == state {
			return
		}
	}
	t.Fatalf("never %v: %v", state, s.Err())
}

// A plugin that is shutting down has resumed nothing, so the next one can.
func TestASessionOutlivesAPluginThatRefusesItAtItsEnd(t *testing.T) {
	c := client.Unconnected()
	_, kill := play(t, c, &scripted{open: serves(time.Hour)})
	s := openScripted(t, c)
	kill()
	until(t, s, recipes.Suspended)
	asked := make(chan struct{}, 1000)
	_, kill = play(t, c, &scripted{open: func(leaseStream, *pb.Resume) error {
		asked <- struct{}{}
		return rpcwire.ToStatus(fmt.Errorf("open session: %w: %w", recipes.ErrUnavailable, recipes.ErrPluginLost))
	}})
	next(t, asked)
	next(t, asked)
	kill()
	resumed := make(chan string, 1)
	play(t, c, &scripted{open: func(st leaseStream, r *pb.Resume) error {
		resumed <- string(r.GetTicket())
		return serves(time.Hour)(st, r)
	}})
	until(t, s, recipes.Connected)
	if err := s.Err(); err != nil || next(t, resumed) != "ticket" {
		t.Error(err)
	}
}

// Another server may have granted another timeout, which the ticket contains.
func TestTheNewestTicketIsPresented(t *testing.T) {
	c := client.Unconnected()
	_, kill := play(t, c, &scripted{open: serves(time.Hour)})
	s := openScripted(t, c)
	shown := make(chan string, 1)
	for _, ticket := range []string{"second", "", "third"} {
		kill()
		until(t, s, recipes.Suspended)
		_, kill = play(t, c, &scripted{open: func(st leaseStream, r *pb.Resume) error {
			shown <- string(r.GetTicket())
			return serves(time.Hour)(ticketed{st, ticket}, r)
		}})
		until(t, s, recipes.Connected)
		want := map[string]string{"second": "ticket", "": "second", "third": "second"}[ticket]
		if got := next(t, shown); got != want {
			t.Errorf("before %q it shows %q; want %q", ticket, got, want)
		}
	}
}

// ticketed is a stream whose Opened has another ticket.
type ticketed struct {
	leaseStream
	ticket string
}

func (s ticketed) Send(m *pb.OpenResponse) error {
	if o := m.GetOpened(); o != nil {
		o.Ticket = []byte(s.ticket)
	}
	return s.leaseStream.Send(m)
}

// The next plugin may report that the session has ended. Or the server has granted the session a
// smaller timeout, and the plugin dies before it echoes a heartbeat.
func TestTheNextPluginsFirstAnswerCounts(t *testing.T) {
	for want, open := range map[error]func(leaseStream, *pb.Resume) error{
		recipes.ErrExpired: func(leaseStream, *pb.Resume) error { return rpcwire.ToStatus(recipes.ErrExpired) },
		recipes.ErrDeadline: func(st leaseStream, _ *pb.Resume) error {
			_ = st.Send(opened(50 * time.Millisecond))
			<-st.Context().Done()
			return nil
		},
	} {
		c := client.Unconnected()
		_, kill := play(t, c, &scripted{open: serves(time.Hour)})
		s := openScripted(t, c)
		kill()
		play(t, c, &scripted{open: open})
		closes(t, "Done", s.Done())
		matches(t, s.Err(), want)
	}
}

// The sessions that the plugin serves read its messages after its end. If something keeps
// their streams open, they are lost, because an unread message may report their loss.
func TestMessagesOfAPluginAreReadAfterItsEnd(t *testing.T) {
	for _, kept := range []bool{false, true} {
		c := client.Unconnected()
		end := make(chan struct{})
		p, _ := play(t, c, &scripted{open: func(st leaseStream, r *pb.Resume) error {
			go func() { _ = serves(time.Hour)(st, r) }()
			select {
			case <-end:
			case <-st.Context().Done():
			}
			return nil
		}})
		s := openScripted(t, c)
		patient, giveUp := context.WithCancel(context.Background())
		left := make(chan struct{})
		go func() {
			defer close(left)
			if p.ProcessEnded(patient); p.Serving() > 0 {
				t.Error("a session still reads")
			}
		}()
		if kept {
			giveUp()
			closes(t, "Done", s.Done())
			matches(t, s.Err(), recipes.ErrPluginLost)
		} else {
			close(end)
			until(t, s, recipes.Suspended)
			must.Report(t, s.Err())
		}
		closes(t, "ProcessEnded", left)
		giveUp()
	}
}

// The error of a call whose context ends before the next plugin serves the session says so.
// ErrSessionLost in an answer counts as a loss only with a reason.
func TestAPluginThatHasDetachedDoesNotEndTheSession(t *testing.T) {
	detached := fmt.Errorf("%w: detached", recipes.ErrSessionLost)
	for _, test := range []struct{ answered, want, not error }{
		{detached, context.Canceled, recipes.ErrSessionLost},
		{fmt.Errorf("%w: %w", recipes.ErrUnknownOutcome, detached), recipes.ErrUnknownOutcome, recipes.ErrSessionLost},
		{recipes.ErrExpired, recipes.ErrExpired, context.Canceled},
	} {
		c := client.Unconnected()
		wanted, cancel := context.WithCancel(ctx(t))
		play(t, c, &scripted{open: serves(time.Hour), acquired: cancel, acquire: func(*pb.AcquireRequest) (*pb.AcquireResponse, error) {
			return nil, rpcwire.ToStatus(test.answered)
		}})
		_, err := lock(t, openScripted(t, c), recipes.LockConfig{}).Acquire(wanted)
		if !errors.Is(err, test.want) || errors.Is(err, test.not) {
			t.Errorf("%v: %v", test.answered, err)
		}
	}
}

// shared is a stream on which several goroutines may send.
type shared struct {
	leaseStream
	mu *sync.Mutex
}

func (s shared) Send(m *pb.OpenResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaseStream.Send(m)
}

package server_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/rpc/carry"
	"github.com/zkrecipes/zkrecipes/internal/rpc/link"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

func bounded(t testing.TB) context.Context { t.Helper(); return watchdog.Bounded(t) }

// serve serves in memory, and returns a host's connection.
func serve(t *testing.T, cfg server.Config, opts ...grpc.DialOption) (*grpc.ClientConn, *server.Server) {
	t.Helper()
	l := bufconn.Listen(64 << 10)
	s := server.New(cfg)
	served := append(s.Options(), grpc.WaitForHandlers(true))
	if cfg.Lifetime != nil {
		served = append(served, grpc.Creds(server.Connections(insecure.NewCredentials(), nil)))
	}
	g := grpc.NewServer(served...)
	s.Register(g)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	conn := must.Get(grpc.NewClient("passthrough:///memory", append(append(link.DialOptions(nil, nil), opts...), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...))(t)
	t.Cleanup(func() { _ = conn.Close(); g.Stop(); <-done; _ = s.Close(context.Background()) })
	return conn, s
}

// A rawHost uses the protocol directly, like a host in another language.
type rawHost struct {
	t       *testing.T
	ctx     context.Context
	conn    *grpc.ClientConn
	server  *server.Server
	zk      *zkserver.Server
	dial    zookeeper.Dialer                    // to zk
	opened  recipes.Client                      // the plugin's latest session on zk
	wrap    func(recipes.Client) recipes.Client // changes the plugin's sessions on zk; may be nil
	servers []string
	timeout time.Duration // of its session
	stream  grpc.BidiStreamingClient[pb.OpenRequest, pb.OpenResponse]
	session string // its name in the plugin

	sessions pb.SessionServiceClient
	grants   pb.GrantServiceClient
	plugin   pb.PluginServiceClient
}

// newRawHost returns a host of a plugin. By default, the plugin opens sessions on a server of the
// host's.
func newRawHost(t *testing.T, cfg server.Config) *rawHost {
	t.Helper()
	h := &rawHost{t: t, ctx: bounded(t), servers: []string{"server"}, timeout: time.Hour}
	h.zk, h.dial = zktest.Piped(t)
	if cfg.Open == nil {
		cfg.Open = func(ctx context.Context, cfg recipes.SessionConfig) (s recipes.Client, err error) {
			h.opened, err = h.dial.Open(ctx, cfg)
			if err != nil || h.wrap == nil {
				return h.opened, err
			}
			return h.wrap(h.opened), nil
		}
	}
	h.conn, h.server = serve(t, cfg)
	h.sessions, h.grants = pb.NewSessionServiceClient(h.conn), pb.NewGrantServiceClient(h.conn)
	h.plugin = pb.NewPluginServiceClient(h.conn)
	return h
}

// try opens or resumes a session. more may change the request.
func (h *rawHost) try(ctx context.Context, resume *pb.Resume, more ...func(proto.Message)) (*pb.Opened, error) {
	h.t.Helper()
	st := must.Get(h.sessions.Open(ctx))(h.t)
	start := &pb.Start{Config: &pb.Config{Servers: h.servers, SessionTimeout: durationpb.New(h.timeout)}, Resume: resume}
	for _, more := range more {
		more(start)
	}
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}})
	m, err := st.Recv()
	if err != nil {
		err, _ = wire.Error(err)
		return nil, err
	}
	h.stream, h.session = st, m.GetOpened().GetSession()
	return m.GetOpened(), nil
}

func (h *rawHost) open(resume *pb.Resume) *pb.Opened {
	h.t.Helper()
	return must.Get(h.try(h.ctx, resume))(h.t)
}

func (h *rawHost) send(m *pb.OpenRequest) {
	h.t.Helper()
	must.Do(h.t, h.stream.Send(m))
}

func heartbeat(n uint64) *pb.OpenRequest {
	return &pb.OpenRequest{Message: &pb.OpenRequest_Beat{Beat: &pb.Beat{Number: n}}}
}

// acquire asks for a lock in the host's session.
func (h *rawHost) acquire(r *pb.AcquireRequest) (*pb.Grant, error) {
	r.Session, r.Recipe = h.session, &pb.AcquireRequest_Lock{}
	a, err := h.grants.Acquire(h.ctx, r)
	err, _ = wire.Error(err)
	return a.GetGrant(), err
}

// An answer is that of a call of Acquire.
type answer struct {
	*pb.AcquireResponse
	err error
}

// announced asks for a grant in the host's session, by PluginService.Call. It returns the znode of
// the contender when the place is known, or "" if the call ends before.
func (h *rawHost) announced(r *pb.AcquireRequest) (znode string, answered <-chan answer) {
	h.t.Helper()
	r.Session = h.session
	place, got := make(chan string, 9), make(chan answer, 1)
	ctx := carry.WithEarly(h.ctx, func(part proto.Message) { place <- part.(*pb.AcquireResponse).GetPlace().GetZnode() })
	go func() {
		a, err := pb.NewGrantServiceClient(carry.New(h.conn, nil)).Acquire(ctx, r)
		close(place)
		got <- answer{a, err}
	}()
	return <-place, got
}

// An older host omits every field that was added after the first version. A newer one sends
// fields that this plugin does not know. Both get their lock.
func TestOlderAndNewerHosts(t *testing.T) {
	for name, more := range map[string]func(proto.Message){
		"older": func(proto.Message) {},
		"newer": func(m proto.Message) {
			field := protowire.AppendTag(nil, 1000, protowire.VarintType)
			m.ProtoReflect().SetUnknown(protowire.AppendVarint(field, 7))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRawHost(t, server.Config{})
			must.Get(h.try(h.ctx, nil, more))(t)
			ask := &pb.AcquireRequest{RequestId: "1", Path: "/l"}
			more(ask)
			if g, err := h.acquire(ask); err != nil || g.GetToken() == 0 {
				t.Fatal(g, err)
			}
			must.Get(h.grants.Release(h.ctx, &pb.ReleaseRequest{Session: h.session, RequestId: "1"}))(t)
		})
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

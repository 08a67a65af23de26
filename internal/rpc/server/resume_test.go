package server_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// wireToZooKeeper is a plugin's way to ZooKeeper. When it is cut, ZooKeeper sees what it would see
// if the plugin were killed.
type wireToZooKeeper struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (w *wireToZooKeeper) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, errors.New("cut")
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	w.conns = append(w.conns, c)
	return c, err
}

func (w *wireToZooKeeper) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// A rawHost speaks the protocol to one plugin.
type rawHost struct {
	t        *testing.T
	ctx      context.Context
	sessions pb.SessionServiceClient
	locks    pb.LockServiceClient
	grants   pb.GrantServiceClient
	plugin   pb.PluginServiceClient
	barriers pb.DoubleBarrierServiceClient
	commits  pb.TransactionServiceClient
	zk       *zkserver.Server
	stream   grpc.BidiStreamingClient[pb.OpenRequest, pb.OpenResponse]
	conn     grpc.ClientConnInterface
}

func hostOf(t *testing.T, zk *zkserver.Server, cfg server.Config) *rawHost {
	t.Helper()
	conn, _ := serveConfig(t, cfg)
	return &rawHost{
		t: t, ctx: bounded(t), zk: zk, sessions: pb.NewSessionServiceClient(conn), locks: pb.NewLockServiceClient(conn),
		grants: pb.NewGrantServiceClient(conn), plugin: pb.NewPluginServiceClient(conn),
		barriers: pb.NewDoubleBarrierServiceClient(conn), commits: pb.NewTransactionServiceClient(conn), conn: conn,
	}
}

func zooKeeper(t *testing.T) *zkserver.Server {
	t.Helper()
	srv, err := zkserver.Listen(zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

// try opens or resumes a session.
func (h *rawHost) try(resume *pb.Resume) (*pb.Opened, error) {
	h.t.Helper()
	st, err := h.sessions.Open(h.ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	start := &pb.Start{Config: &pb.Config{Servers: []string{h.zk.Addr()}, SessionTimeout: durationpb.New(20 * time.Second)}, Resume: resume}
	_ = st.Send(&pb.OpenRequest{Message: &pb.OpenRequest_Start{Start: start}})
	m, err := st.Recv()
	if err != nil {
		err, _ = wire.Error(err)
		return nil, err
	}
	h.stream = st
	return m.GetOpened(), nil
}

func (h *rawHost) open(resume *pb.Resume) *pb.Opened {
	h.t.Helper()
	o, err := h.try(resume)
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

func (h *rawHost) acquire(r *pb.AcquireRequest) (*pb.Grant, error) {
	a, err := h.locks.Acquire(h.ctx, r)
	err, _ = wire.Error(err)
	return a.GetGrant(), err
}

// joined returns where the contender stands in line.
func (h *rawHost) joined(id string) string {
	h.t.Helper()
	for {
		m, err := h.stream.Recv()
		if err != nil {
			h.t.Fatal(err)
		}
		if j := m.GetJoined(); j.GetRequestId() == id {
			return j.GetPlace().GetZnode()
		}
	}
}

func resumeOf(o *pb.Opened) *pb.Resume {
	return &pb.Resume{Ticket: o.GetTicket(), Session: o.GetSession(), KnownContactAge: durationpb.New(0)}
}

// A session goes on in a second plugin: its hold, its place in line, and nothing else.
func TestASessionOutlivesItsPlugin(t *testing.T) {
	for _, end := range []string{"killed", "detached"} {
		t.Run(end, func(t *testing.T) {
			zk, way := zooKeeper(t), new(wireToZooKeeper)
			first := hostOf(t, zk, server.Config{Open: zookeeper.OpenWith(way.dial), Resume: zookeeper.Resume})
			opened := first.open(nil)
			session := opened.GetSession()
			held, err := first.acquire(&pb.AcquireRequest{Session: session, RequestId: "1", Path: "/held"})
			if err != nil {
				t.Fatal(err)
			}
			other, err := zookeeper.Open(first.ctx, recipes.SessionConfig{Servers: []string{zk.Addr()}})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(context.Background())
			theirs := acquired(t, other, "/awaited")
			await := func(id string) (place string) {
				go first.acquire(&pb.AcquireRequest{Session: session, RequestId: id, Path: "/awaited", Announce: true})
				return first.joined(id)
			}
			place := await("2")
			await("3") // which will not be taken up

			if end == "killed" {
				way.kill()
			} else if _, err := first.sessions.Detach(first.ctx, &pb.DetachRequest{Session: session}); err != nil {
				t.Fatal(err)
			}
			second := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume})
			again := second.open(resumeOf(opened))
			if again.GetSession() != session || again.GetSessionId() != opened.GetSessionId() || string(again.GetTicket()) != string(opened.GetTicket()) {
				t.Error("it is another session")
			}
			if _, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "4", Path: "/new"}); !errors.Is(err, wire.ErrResuming) || !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("a new contender before DropRest: %v", err)
			}
			for range 2 { // a repetition finds what the first call has made
				taken, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "1", Path: "/held", Resumed: held})
				if err != nil || taken.GetToken() != held.GetToken() || taken.GetZnode() != held.GetZnode() {
					t.Fatalf("took up %v: %v", taken, err)
				}
			}
			if _, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "5", Path: "/held", Resumed: &pb.Grant{Znode: held.GetZnode(), Token: held.GetToken() + 1}}); !errors.Is(err, recipes.ErrRemoved) {
				t.Errorf("another token: %v", err)
			}
			turn := make(chan error, 1)
			go func() {
				_, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "2", Path: "/awaited", Announce: true, Resumed: &pb.Grant{Znode: place}})
				turn <- err
			}()
			if at := second.joined("2"); at != place {
				t.Errorf("it waits at %s", at)
			}
			for range 2 {
				if _, err := second.sessions.DropRest(second.ctx, &pb.DropRestRequest{Session: session}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "6", Path: "/held", Resumed: held}); !errors.Is(err, recipes.ErrInvalid) || errors.Is(err, wire.ErrResuming) {
				t.Errorf("taken up after DropRest: %v", err)
			}
			line := contenders(t, other, "/awaited")
			if len(line) != 2 || line[1].Znode != place {
				t.Errorf("in line: %+v", line)
			}
			write := &pb.WriteRequest{Session: session, RequestId: "1", Ops: wire.ToOps([]recipes.Op{recipes.Create("/written", nil)})}
			if _, err := second.grants.Write(second.ctx, write); err != nil {
				t.Error(err)
			}
			repeated := make(chan error, 1)
			go func() { // which finds what the first call waits for
				_, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "2", Path: "/awaited", Resumed: &pb.Grant{Znode: place}})
				repeated <- err
			}()
			if err := theirs.Release(second.ctx); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(<-turn, <-repeated); err != nil {
				t.Error(err)
			}
			if _, err := second.grants.Release(second.ctx, &pb.ReleaseRequest{Session: session, RequestId: "1"}); err != nil {
				t.Error(err)
			}
			if _, err := second.acquire(&pb.AcquireRequest{Session: session, RequestId: "7", Path: "/new"}); err != nil {
				t.Error(err)
			}
			if _, err := second.sessions.Close(second.ctx, &pb.CloseRequest{Session: session}); err != nil {
				t.Error(err)
			}
		})
	}
}

func acquired(t *testing.T, s recipes.Recipes, path string) recipes.Hold {
	t.Helper()
	l, err := s.Lock(path, recipes.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Acquire(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func contenders(t *testing.T, s recipes.Recipes, path string) []recipes.Contender {
	t.Helper()
	l, err := s.Lock(path, recipes.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.Contenders(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatCannotBeResumed(t *testing.T) {
	zk := zooKeeper(t)
	able := server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume}
	first, second := hostOf(t, zk, able), hostOf(t, zk, able)
	opened := first.open(nil)
	refused := func(what string, h *rawHost, want error, change func(*pb.Resume)) {
		t.Helper()
		r := resumeOf(opened)
		r.Ticket = slices.Clone(r.Ticket)
		change(r)
		if _, err := h.try(r); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a session of the plugin's own", first, recipes.ErrInvalid, func(*pb.Resume) {})
	refused("no name", second, recipes.ErrInvalid, func(r *pb.Resume) { r.Session = "" })
	refused("no contact", second, recipes.ErrInvalid, func(r *pb.Resume) { r.KnownContactAge = nil })
	refused("a contact to come", second, recipes.ErrInvalid, func(r *pb.Resume) { r.KnownContactAge = durationpb.New(-1) })
	refused("a contact of long ago", second, recipes.ErrDeadline, func(r *pb.Resume) { r.KnownContactAge = opened.GetTimeout() })
	refused("no ticket", second, recipes.ErrInvalid, func(r *pb.Resume) { r.Ticket = nil })
	refused("a forged ticket", second, recipes.ErrExpired, func(r *pb.Resume) { r.Ticket[4+8+4] ^= 1 })

	unable := hostOf(t, zk, server.Config{Open: zookeeper.Open})
	refused("by a plugin that cannot", unable, recipes.ErrUnsupported, func(*pb.Resume) {})
	if ticket := unable.open(nil).GetTicket(); ticket != nil {
		t.Error("a plugin that cannot resume gives tickets")
	}
	for h, can := range map[*rawHost]bool{first: true, unable: false} {
		info, err := h.plugin.Info(h.ctx, &pb.InfoRequest{})
		if err != nil || slices.Contains(info.GetCapabilities(), "resume") != can {
			t.Errorf("capabilities %q, %v", info.GetCapabilities(), err)
		}
	}
	// All that left the session alone.
	if _, err := first.acquire(&pb.AcquireRequest{Session: opened.GetSession(), RequestId: "1", Path: "/l"}); err != nil {
		t.Error(err)
	}
}

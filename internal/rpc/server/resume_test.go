package server_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/zkrecipes/zkrecipes/internal/jute"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

var able = server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume}

func hostOf(t *testing.T, zk *zkserver.Server, cfg server.Config) *rawHost {
	t.Helper()
	h := newRawHost(t, cfg)
	h.servers, h.timeout = []string{zk.Addr()}, 20*time.Second
	return h
}

func resumeOf(o *pb.Opened) *pb.Resume {
	return &pb.Resume{Ticket: o.GetTicket(), Session: o.GetSession(), KnownContactAge: durationpb.New(0)}
}

// moving is a session in a plugin that will be killed.
type moving struct {
	*rawHost
	zk     *zkserver.Server
	way    *zktest.Link
	opened *pb.Opened
}

func startMoving(t *testing.T, zk *zkserver.Server) moving {
	t.Helper()
	way := zktest.LinkTo(zk.ServeConn)
	h := hostOf(t, zk, server.Config{Open: zookeeper.Dialer(way.Dial).Open, Resume: zookeeper.Resume})
	return moving{h, zk, way, h.open(nil)}
}

// move kills the plugin, and lets another one resume the session.
func (m moving) move() *rawHost {
	m.t.Helper()
	m.way.Cut()
	next := hostOf(m.t, m.zk, able)
	next.open(resumeOf(m.opened))
	return next
}

func (h *rawHost) dropRest() {
	h.t.Helper()
	must.Get(h.sessions.DropRest(h.ctx, &pb.DropRestRequest{Session: h.session}))(h.t)
}

func acquired(t *testing.T, s recipes.Recipes, path string) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock(path, recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(bounded(t)))(t)
}

func TestWhatCannotBeResumed(t *testing.T) {
	zk := zktest.Embedded(t)
	first, second := hostOf(t, zk, able), hostOf(t, zk, able)
	opened := first.open(nil)
	refused := func(what string, h *rawHost, want error, change func(*pb.Resume)) {
		t.Helper()
		r := resumeOf(opened)
		r.Ticket = slices.Clone(r.Ticket)
		change(r)
		if _, err := h.try(h.ctx, r); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
		if h.session = opened.GetSession(); h == first {
			return
		}
		if _, err := h.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/l"}); !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%s: a session of that name: %v", what, err)
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
	// The refused calls did not affect the session.
	if _, err := first.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/l"}); err != nil {
		t.Error(err)
	}
}

// A plugin that is resuming a session refuses to resume it again.
func TestASessionIsResumedOnce(t *testing.T) {
	zk := zktest.Embedded(t)
	first := hostOf(t, zk, able)
	opened := first.open(nil)
	must.Get(first.sessions.Detach(first.ctx, &pb.DetachRequest{Session: opened.GetSession()}))(t)
	resuming, proceed := make(chan struct{}), make(chan struct{})
	second := hostOf(t, zk, server.Config{Open: zookeeper.Open, Resume: func(ctx context.Context, cfg recipes.SessionConfig, ticket []byte, known time.Time) (recipes.Client, error) {
		close(resuming)
		<-proceed
		return zookeeper.Resume(ctx, cfg, ticket, known)
	}})
	other := *second
	resumed := make(chan error, 1)
	go func() {
		_, err := second.try(second.ctx, resumeOf(opened))
		resumed <- err
	}()
	<-resuming
	_, err := other.try(other.ctx, resumeOf(opened))
	close(proceed)
	if !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("resumed twice: %v", err)
	}
	must.Report(t, <-resumed)
}

// After a failed resume the same id can be used again. The plugin does not repeat the first
// error, whose cause may be gone.
func TestAFailedResumeCanBeRepeated(t *testing.T) {
	t.Parallel()
	first := startMoving(t, zktest.Embedded(t))
	ask := &pb.AcquireRequest{RequestId: "1", Path: "/held"}
	held := must.Get(first.acquire(ask))(t)
	second := first.move()
	ask.Resumed = &pb.Grant{Znode: held.GetZnode(), Token: held.GetToken() + 1}
	for range 2 {
		if _, err := second.acquire(ask); !errors.Is(err, recipes.ErrRemoved) {
			t.Fatalf("another token: %v", err)
		}
	}
	ask.Resumed = held
	if taken, err := second.acquire(ask); err != nil || taken.GetToken() != held.GetToken() {
		t.Errorf("resumed %v: %v", taken, err)
	}
	must.Get(second.grants.Abandon(second.ctx, &pb.AbandonRequest{Session: second.session, RequestId: "2"}))(t)
	ask.RequestId = "2"
	for range 2 { // an abandoned id is not tried again
		if _, err := second.acquire(ask); err == nil || errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("an abandoned call: %v", err)
		}
	}
}

// A host that asks to wait for the others must say which: nothing is created for it.
func TestALeavingMemberNamesItsOthers(t *testing.T) {
	zk := zktest.Embedded(t)
	h := hostOf(t, zk, able)
	session := h.open(nil).GetSession()
	begun := len(zk.Tree())
	for _, leaving := range []*pb.AcquireRequest{
		{Session: session, Path: "/b", Recipe: &pb.AcquireRequest_DoubleBarrier{DoubleBarrier: &pb.DoubleBarrier{Size: 1}}},
		{Session: session, Path: "/b", Resumed: &pb.Grant{Znode: "/b/other", Token: 1}, Recipe: &pb.AcquireRequest_DoubleBarrier{
			DoubleBarrier: &pb.DoubleBarrier{Size: 1, Leaving: []string{"/b/other"}},
		}},
	} {
		_, err := pb.NewDoubleBarrierServiceClient(h.conn).LeaveDoubleBarrier(h.ctx, &pb.LeaveDoubleBarrierRequest{Session: session, RequestId: "1", Leaving: leaving})
		if err, _ := wire.Error(err); !errors.Is(err, recipes.ErrInvalid) {
			t.Errorf("%v: %v", leaving, err)
		}
	}
	if n := len(zk.Tree()); n != begun {
		t.Errorf("%d znodes, and %d before", n, begun)
	}
}

// A session of ClickHouse Keeper cannot be continued. So the plugin gives no ticket for it, does not
// detach it, and refuses a ticket before it sends anything.
func TestKeepersSessionIsNotMoved(t *testing.T) {
	zk := must.Get(zkserver.Listen(zkserver.Config{Like: zkserver.Keeper22}))(t)
	t.Cleanup(func() { zk.Close() })
	first, second := hostOf(t, zk, able), hostOf(t, zk, able)
	opened := first.open(nil)
	if opened.GetServer() != "keeper" || len(opened.GetTicket()) > 0 {
		t.Errorf("the servers are %q, and the ticket has %d bytes", opened.GetServer(), len(opened.GetTicket()))
	}
	_, err := first.sessions.Detach(first.ctx, &pb.DetachRequest{Session: opened.GetSession()})
	if err, _ := wire.Error(err); !errors.Is(err, recipes.ErrUnsupported) {
		t.Errorf("detached: %v", err)
	}
	var ticket jute.Encoder // of a plugin that did not recognize Keeper
	ticket.Int32(1)
	ticket.Int64(opened.GetSessionId())
	ticket.Buffer(make([]byte, 16))
	ticket.Int64(int64(opened.GetTimeout().AsDuration()))
	r := resumeOf(opened)
	r.Ticket = ticket.Bytes
	_, err = second.try(second.ctx, r)
	if !errors.Is(err, recipes.ErrUnsupported) || errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("resumed: %v", err)
	}
	if _, err := first.acquire(&pb.AcquireRequest{RequestId: "1", Path: "/l"}); err != nil {
		t.Error(err)
	}
	if all := zk.Sessions(); len(all) != 1 {
		t.Errorf("sessions %v", all)
	}
	if got := hostOf(t, zktest.Embedded(t), able).open(nil).GetServer(); got != "zookeeper" {
		t.Errorf("ZooKeeper is %q", got)
	}
}

package server_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// moving is a session in a plugin that will be killed.
type moving struct {
	*rawHost
	way    *wireToZooKeeper
	opened *pb.Opened
}

func startMoving(t *testing.T, zk *zkserver.Server) moving {
	t.Helper()
	way := new(wireToZooKeeper)
	h := hostOf(t, zk, server.Config{Open: zookeeper.OpenWith(way.dial), Resume: zookeeper.Resume})
	return moving{h, way, h.open(nil)}
}

// move kills the plugin, and has another one resume the session.
func (m moving) move() *rawHost {
	m.t.Helper()
	m.way.kill()
	next := hostOf(m.t, m.zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume})
	next.open(resumeOf(m.opened))
	return next
}

func (h *rawHost) dropRest(session string) {
	h.t.Helper()
	if _, err := h.sessions.DropRest(h.ctx, &pb.DropRestRequest{Session: session}); err != nil {
		h.t.Fatal(err)
	}
}

// enter enters in the background.
func (h *rawHost) enter(r *pb.EnterDoubleBarrierRequest) <-chan *pb.EnterDoubleBarrierResponse {
	h.t.Helper()
	done := make(chan *pb.EnterDoubleBarrierResponse, 1)
	go func() {
		answer, err := h.barriers.EnterDoubleBarrier(h.ctx, r)
		if err != nil {
			h.t.Error(err)
		}
		done <- answer
	}()
	return done
}

func (h *rawHost) leaveBarrier(session, id string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := h.barriers.LeaveDoubleBarrier(h.ctx, &pb.LeaveDoubleBarrierRequest{Session: session, RequestId: id})
		err, _ = wire.Error(err)
		done <- err
	}()
	return done
}

func isIn(t *testing.T, members []string, znode string) {
	t.Helper()
	if !slices.Contains(members, znode) {
		t.Errorf("entered with %v, and not with %s", members, znode)
	}
}

// A member of a double barrier goes on in a second plugin, whatever it was doing.
func TestAMemberOutlivesItsPlugin(t *testing.T) {
	const path = "/b"
	ask := func(session, id string) *pb.EnterDoubleBarrierRequest {
		return &pb.EnterDoubleBarrierRequest{Session: session, RequestId: id, Path: path, Size: 2, Announce: true}
	}
	zk := zooKeeper(t)
	other := hostOf(t, zk, server.Config{Open: zookeeper.Open})
	theirs := other.open(nil).GetSession()

	// It waits in Enter.
	first := startMoving(t, zk)
	session := first.opened.GetSession()
	go first.barriers.EnterDoubleBarrier(first.ctx, ask(session, "1"))
	znode := first.joined("1")
	second := first.move()
	again := ask(session, "1")
	again.Resumed = &pb.Grant{Znode: znode}
	mine := second.enter(again)
	in := (<-other.enter(ask(theirs, "1"))).GetMembers()
	isIn(t, in, znode)
	entered := <-mine
	if entered.GetGrant().GetZnode() != znode || !slices.Equal(entered.GetMembers(), in) {
		t.Fatalf("entered as %v with %v; the other with %v", entered.GetGrant(), entered.GetMembers(), in)
	}
	second.dropRest(session)
	mineLeft, theirsLeft := second.leaveBarrier(session, "1"), other.leaveBarrier(theirs, "1")
	if err := errors.Join(<-mineLeft, <-theirsLeft); err != nil {
		t.Fatal(err)
	}

	// It is inside; it leaves, as the first and as the last of the two.
	for _, leaving := range []string{"no", "the lowest", "the highest"} {
		t.Run("leaving: "+leaving, func(t *testing.T) {
			first := startMoving(t, zk)
			session := first.opened.GetSession()
			id := "leaving " + leaving
			var mine, its <-chan *pb.EnterDoubleBarrierResponse
			enterMine := func() { mine = first.enter(ask(session, id)); first.joined(id) }
			enterTheirs := func() { its = other.enter(ask(theirs, id)); other.joined(id) }
			if leaving == "the highest" {
				enterTheirs()
				enterMine()
			} else {
				enterMine()
				enterTheirs()
			}
			entered := <-mine
			<-its
			if leaving != "no" {
				go first.barriers.LeaveDoubleBarrier(first.ctx, &pb.LeaveDoubleBarrierRequest{Session: session, RequestId: id})
			}
			if leaving == "the highest" {
				awaitNoZnode(t, zk, entered.GetGrant().GetZnode())
			}
			second := first.move()
			again := ask(session, id)
			again.Resumed = entered.GetGrant()
			if leaving != "no" {
				again.Leaving = entered.GetMembers()
			}
			taken := <-second.enter(again)
			if taken.GetGrant().GetToken() != entered.GetGrant().GetToken() || !slices.Equal(taken.GetMembers(), entered.GetMembers()) {
				t.Fatalf("took up %v with %v; it had %v with %v", taken.GetGrant(), taken.GetMembers(), entered.GetGrant(), entered.GetMembers())
			}
			second.dropRest(session)
			left := second.leaveBarrier(session, id)
			select {
			case err := <-left:
				t.Fatalf("it left while the other is inside: %v", err)
			default:
			}
			theirsLeft := other.leaveBarrier(theirs, id)
			if err := errors.Join(<-theirsLeft, <-left); err != nil {
				t.Error(err)
			}
		})
	}
}

// awaitNoZnode waits until a znode is gone.
func awaitNoZnode(t *testing.T, zk *zkserver.Server, path string) {
	t.Helper()
	ctx := bounded(t)
	for slices.ContainsFunc(zk.Tree(), func(n zkserver.Node) bool { return n.Path == path }) {
		if ctx.Err() != nil {
			t.Fatalf("%s is still there", path)
		}
	}
}

// The coordinator and a site of one plugin go on in a second one.
func TestATransactionOutlivesItsPlugin(t *testing.T) {
	for _, v := range recipes.Variants() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel() // the plugin that was killed takes its time to end
			zk := zooKeeper(t)
			const path = "/tx"
			first := startMoving(t, zk)
			session := first.opened.GetSession()
			begun, err := first.commits.BeginTransaction(first.ctx, &pb.BeginTransactionRequest{
				Session: session, Path: path, Variant: string(v), Payload: []byte("payload"), Sites: []string{"1", "2"}, RequestId: "1",
			})
			if err != nil {
				t.Fatal(err)
			}
			join := func(h *rawHost, session, site string) *pb.JoinTransactionResponse {
				t.Helper()
				joined, err := h.commits.JoinTransaction(h.ctx, &pb.JoinTransactionRequest{Session: session, Path: path, Site: site})
				if err != nil {
					t.Fatal(err)
				}
				return joined
			}
			mine := join(first.rawHost, session, "1")
			other := hostOf(t, zk, server.Config{Open: zookeeper.Open})
			their := other.open(nil).GetSession()
			theirs := join(other, their, "2")

			second := first.move()
			finish := func(h *rawHost, session, membership string) error {
				_, err := h.commits.FinishSite(h.ctx, &pb.FinishSiteRequest{Session: session, Membership: membership})
				err, _ = wire.Error(err)
				return err
			}
			if err := finish(second, session, mine.GetMembership()); !errors.Is(err, recipes.ErrNoTransaction) {
				t.Errorf("a site that was not taken up has finished: %v", err)
			}
			resume := func(transaction, membership string) error {
				_, coordinator := second.commits.BeginTransaction(second.ctx, &pb.BeginTransactionRequest{Session: session, Path: path, Resumed: transaction, RequestId: "1"})
				again, site := second.commits.JoinTransaction(second.ctx, &pb.JoinTransactionRequest{Session: session, Path: path, Site: "1", Resumed: membership})
				if site == nil && (again.GetMembership() != membership || string(again.GetPayload()) != "payload") {
					t.Errorf("took up %v", again)
				}
				coordinator, _ = wire.Error(coordinator)
				site, _ = wire.Error(site)
				return errors.Join(coordinator, site)
			}
			if err := resume("another", "another/one"); !errors.Is(err, recipes.ErrNoTransaction) {
				t.Errorf("another transaction: %v", err)
			}
			for range 2 {
				if err := resume(begun.GetTransaction(), mine.GetMembership()); err != nil {
					t.Fatal(err)
				}
			}
			second.dropRest(session)
			if status, err := other.commits.GetTransaction(other.ctx, &pb.GetTransactionRequest{Session: their, Path: path}); err != nil || status.GetCoordinated() != (v != recipes.AllWatch) {
				t.Errorf("after DropRest: %v, %v", status, err)
			}
			if err := resume(begun.GetTransaction(), mine.GetMembership()); !errors.Is(err, recipes.ErrInvalid) {
				t.Errorf("after DropRest: %v", err)
			}

			for h, membership := range map[*rawHost]string{second: mine.GetMembership(), other: theirs.GetMembership()} {
				vote := &pb.VoteTransactionRequest{Session: session, Membership: membership, Vote: string(recipes.VoteCommit)}
				if h == other {
					vote.Session = their
				}
				if _, err := h.commits.VoteTransaction(h.ctx, vote); err != nil {
					t.Fatal(err)
				}
			}
			told, err := second.commits.CoordinateTransaction(second.ctx, &pb.CoordinateTransactionRequest{Session: session, Path: path})
			if err != nil || !told.GetDecision().GetCommit() {
				t.Fatalf("%v, %v", told, err)
			}
			for range 2 { // a repetition has happened before
				if err := errors.Join(finish(second, session, mine.GetMembership()), finish(other, their, theirs.GetMembership())); err != nil {
					t.Error(err)
				}
			}
			awaitNoZnode(t, zk, path)
		})
	}
}

package session_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// bareOwner is the owner of a bare znode that it releases, and another client that interferes.
type bareOwner struct {
	t        *testing.T
	ctx      context.Context
	s, other *session.Session
	place    session.BareZnode
}

func (g *bareOwner) gone() {
	must.Report(g.t, g.other.DeleteOnce(g.ctx, g.place.Path, -1))
}

// again makes the other client create a znode of the same name, in a new wait queue.
func (g *bareOwner) again() {
	_ = g.other.DeleteOnce(g.ctx, g.place.Path, -1) // the znode may be deleted already
	must.Report(g.t, g.other.DeleteOnce(g.ctx, "/line", -1))
	if place, _, err := g.other.CreateBare(g.ctx, "/line", "lock-", nil, false, g.other.EnsureQueuePath); err != nil || place.Path != g.place.Path {
		g.t.Errorf("%+v, %v", place, err)
	}
}

// Another client interferes, and requests and replies are lost. The owner learns whether its
// znode was deleted, with as few requests as possible, and changes no other znode.
func TestAReleasedZnode(t *testing.T) {
	var (
		lost      = zkserver.Fault{CloseBefore: true}
		replyLost = zkserver.Fault{DropReply: true}
		expired   = zkserver.Fault{ExpireBefore: true}
		handoff   = func(g *bareOwner) <-chan error { return g.s.Handoff(g.ctx, g.place) }
		del       = func(g *bareOwner) <-chan error { return g.s.DeleteBare(g.place) }
	)
	for name, test := range map[string]struct {
		give            func(*bareOwner) <-chan error
		before, atRead  func(*bareOwner)
		multi, read     zkserver.Fault // faults of the first multi and of the first read
		want            error
		unwatched       bool // neither the znode nor its parent is watched
		stays           bool // whether another client's znode of that name must remain
		multis, deletes int64
		fallbacks       int64
	}{
		"handoff":                                    {give: handoff, multis: 1},
		"handoff of a deleted znode":                 {give: handoff, before: (*bareOwner).gone, want: recipes.ErrNoNode, multis: 1},
		"handoff, another client has the name":       {give: handoff, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"unwatched":                                  {give: handoff, unwatched: true, multis: 1},
		"unwatched, deleted":                         {give: handoff, unwatched: true, before: (*bareOwner).gone, want: recipes.ErrNoNode},
		"unwatched, another client has the name":     {give: handoff, unwatched: true, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"unwatched, session expired":                 {give: handoff, unwatched: true, read: expired, want: recipes.ErrExpired},
		"handoff, throttled":                         {give: handoff, multi: zkserver.Fault{Throttle: true}, multis: 1, deletes: 1, fallbacks: 1},
		"handoff, request lost":                      {give: handoff, multi: lost, multis: 2},
		"handoff, request lost, then deleted":        {give: handoff, multi: lost, atRead: (*bareOwner).gone, multis: 1},
		"handoff, reply lost":                        {give: handoff, multi: replyLost, multis: 1},
		"handoff, reply lost, then another client's": {give: handoff, multi: replyLost, atRead: (*bareOwner).again, stays: true, multis: 1},
		"handoff, request lost, session expired":     {give: handoff, multi: lost, read: expired, want: recipes.ErrExpired, multis: 1},
		"delete":                                     {give: del, deletes: 1},
		"delete a deleted znode":                     {give: del, before: (*bareOwner).gone, want: recipes.ErrNoNode},
		"delete, another client has the name":        {give: del, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"delete, session expired":                    {give: del, read: expired, want: recipes.ErrExpired},
		"delete, deleted just before the read":       {give: del, atRead: (*bareOwner).gone, want: recipes.ErrNoNode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := embedded(t)
			g := &bareOwner{t: t, ctx: zktest.Bounded(t), s: open(t, to(srv)), other: open(t, to(srv))}
			var err error
			g.place, _, err = g.s.CreateBare(g.ctx, "/line", "lock-", nil, !test.unwatched, g.s.EnsureQueuePath)
			must.Do(t, err)
			if test.before != nil {
				test.before(g)
				must.Do(t, g.s.Sync(g.ctx, "/")) // after the sync, all events have arrived
			}
			var multis, reads, deletes atomic.Int64
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				switch {
				case r.SessionID != g.s.ID():
				case r.Op == zkserver.OpMulti && multis.Add(1) == 1:
					f = test.multi
				case r.Op == zkserver.OpExists && reads.Add(1) == 1:
					if f = test.read; test.atRead != nil {
						test.atRead(g)
					}
				case r.Op == zkserver.OpDelete:
					deletes.Add(1)
				}
				return f
			})
			if err := <-test.give(g); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			srv.SetFault(nil)
			if multis.Load() != test.multis || deletes.Load() != test.deletes {
				t.Errorf("%d handoffs and %d deletions were sent; want %d and %d", multis.Load(), deletes.Load(), test.multis, test.deletes)
			}
			if _, err := g.other.Stat(g.ctx, g.place.Path); (err == nil) != test.stays {
				t.Errorf("a later read returns %v", err)
			}
			if n := g.s.Counters().Fallbacks; n != test.fallbacks {
				t.Errorf("%d fallbacks are counted; want %d", n, test.fallbacks)
			}
			if n := g.s.Places(); n != 0 {
				t.Errorf("%d places are remembered", n)
			}
			if !g.s.Identified() {
				t.Error("the session has dropped its identity")
			}
		})
	}
}

// The caller gives up while there is no connection. The release remains a handoff.
func TestAHandoffOutlivesItsCaller(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	place := bare(t, s, "/line")
	gone := must.Get(s.Connected(ctx))(t)
	srv.RefuseConnections(true)
	srv.CloseConnection(s.ID())
	<-gone
	given, giveUp := context.WithCancel(ctx)
	giveUp()
	result := s.Handoff(given, place)
	srv.RefuseConnections(false)
	must.Do(t, <-result)
	if n := s.Counters().Fallbacks; n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}

// The session forgets a bare znode that is known to be deleted, however it was deleted.
func TestDeletedBareZnodesAreForgotten(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	for name, end := range map[string]func(session.BareZnode) error{
		"handed off": func(p session.BareZnode) error { return <-s.Handoff(ctx, p) },
		"deleted":    func(p session.BareZnode) error { return <-s.DeleteBare(p) },
		"forgotten":  func(p session.BareZnode) error { s.ForgetBare(p); return nil },
		"deleted by another client": func(p session.BareZnode) error {
			if err := s.DeleteOnce(ctx, p.Path, -1); err != nil {
				return err
			}
			if err := <-s.DeleteBare(p); !session.IsGone(err) {
				t.Errorf("deleted again: %v", err)
			}
			return nil
		},
	} {
		place := bare(t, s, "/line")
		if s.Places() != 1 {
			t.Errorf("%s: %d places before", name, s.Places())
		}
		if err := end(place); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Places() != 0 {
			t.Errorf("%s: %d places are remembered", name, s.Places())
		}
	}
}

// stranger sends an identity that is not the session's. So the server behaves like one that hashes
// the identity in another way.
type stranger struct{ net.Conn }

func (c stranger) Write(frame []byte) (int, error) {
	return c.Conn.Write(bytes.Replace(frame, []byte(":handoff"), []byte(":another"), 1))
}

// A znode to which its own session may not write is deleted. The session then creates no more
// bare znodes.
func TestAPlaceThatMayNotBeWritten(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s, err := session.Open(ctx, to(srv), func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return stranger{c}, err
	})
	must.Do(t, err)
	t.Cleanup(func() { closeNow(s) })
	place, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureQueuePath)
	if err != nil || !s.CreatesBare() {
		t.Fatalf("%v; it takes places: %v", err, s.CreatesBare())
	}
	if err := <-s.Handoff(ctx, place); err != nil {
		t.Errorf("got %v", err)
	}
	if n := s.Counters().Fallbacks; n != 1 || s.CreatesBare() {
		t.Errorf("%d fallbacks are counted; it takes places: %v", n, s.CreatesBare())
	}
	if _, err := s.Stat(ctx, place.Path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("a later read returns %v", err)
	}
}

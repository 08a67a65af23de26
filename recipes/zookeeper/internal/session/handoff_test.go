package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// bareOwner is a bare znode that its owner gives back, and another client that gets in between.
type bareOwner struct {
	t        *testing.T
	ctx      context.Context
	s, other *session.Session
	place    session.BareZnode
}

func (g *bareOwner) gone() {
	if err := g.other.DeleteOnce(g.ctx, g.place.Path, -1); err != nil {
		g.t.Error(err)
	}
}

// again has the other client make a place of the same name, in a new line.
func (g *bareOwner) again() {
	_ = g.other.DeleteOnce(g.ctx, g.place.Path, -1) // it may be gone
	if err := g.other.DeleteOnce(g.ctx, "/line", -1); err != nil {
		g.t.Error(err)
	}
	if place, _, err := g.other.CreateBare(g.ctx, "/line", "lock-", nil, false, g.other.EnsureLine); err != nil || place.Path != g.place.Path {
		g.t.Errorf("%+v, %v", place, err)
	}
}

// Another client gets in between, and requests and replies are lost. The owner
// learns what became of its place, by as few requests as can be, and touches no other.
func TestAPlaceThatIsGivenBack(t *testing.T) {
	var (
		lost      = zkserver.Fault{CloseBefore: true}
		replyLost = zkserver.Fault{DropReply: true}
		expired   = zkserver.Fault{ExpireBefore: true}
		handoff   = func(g *bareOwner) <-chan error { return g.s.Handoff(g.ctx, g.place) }
		del       = func(g *bareOwner) <-chan error { return g.s.DeleteBare(g.place) }
	)
	for name, test := range map[string]struct {
		give            func(*bareOwner) <-chan error
		before, atLook  func(*bareOwner)
		multi, look     zkserver.Fault // of the first one
		want            error
		unwatched       bool // neither the place nor its line
		stays           bool // another's place of that name
		multis, deletes int64
		fallbacks       int64
	}{
		"handoff":                                {give: handoff, multis: 1},
		"handoff of what is gone":                {give: handoff, before: (*bareOwner).gone, want: recipes.ErrNoNode, multis: 1},
		"handoff, the name is another's":         {give: handoff, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"unwatched":                              {give: handoff, unwatched: true, multis: 1},
		"unwatched, gone":                        {give: handoff, unwatched: true, before: (*bareOwner).gone, want: recipes.ErrNoNode},
		"unwatched, the name is another's":       {give: handoff, unwatched: true, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"unwatched, session expired":             {give: handoff, unwatched: true, look: expired, want: recipes.ErrExpired},
		"handoff, throttled":                     {give: handoff, multi: zkserver.Fault{Throttle: true}, multis: 1, deletes: 1, fallbacks: 1},
		"handoff, request lost":                  {give: handoff, multi: lost, multis: 2},
		"handoff, request lost, then gone":       {give: handoff, multi: lost, atLook: (*bareOwner).gone, multis: 1},
		"handoff, reply lost":                    {give: handoff, multi: replyLost, multis: 1},
		"handoff, reply lost, then another's":    {give: handoff, multi: replyLost, atLook: (*bareOwner).again, stays: true, multis: 1},
		"handoff, request lost, session expired": {give: handoff, multi: lost, look: expired, want: recipes.ErrExpired, multis: 1},
		"delete":                                 {give: del, deletes: 1},
		"delete what is gone":                    {give: del, before: (*bareOwner).gone, want: recipes.ErrNoNode},
		"delete, the name is another's":          {give: del, before: (*bareOwner).again, want: recipes.ErrNoNode, stays: true},
		"delete, session expired":                {give: del, look: expired, want: recipes.ErrExpired},
		"delete, gone just before the look":      {give: del, atLook: (*bareOwner).gone, want: recipes.ErrNoNode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := embedded(t)
			g := &bareOwner{t: t, ctx: bounded(t), s: open(t, to(srv)), other: open(t, to(srv))}
			var err error
			if g.place, _, err = g.s.CreateBare(g.ctx, "/line", "lock-", nil, !test.unwatched, g.s.EnsureLine); err != nil {
				t.Fatal(err)
			}
			if test.before != nil {
				test.before(g)
				if err := g.s.Sync(g.ctx, "/"); err != nil { // what the watches told has arrived
					t.Fatal(err)
				}
			}
			var multis, looks, deletes atomic.Int64
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				switch {
				case r.SessionID != g.s.ID():
				case r.Op == zkserver.OpMulti && multis.Add(1) == 1:
					f = test.multi
				case r.Op == zkserver.OpExists && looks.Add(1) == 1:
					if f = test.look; test.atLook != nil {
						test.atLook(g)
					}
				case r.Op == zkserver.OpDelete:
					deletes.Add(1)
				}
				return f
			})
			if err := <-test.give(g); !errors.Is(err, test.want) {
				t.Errorf("told %v, want %v", err, test.want)
			}
			srv.SetFault(nil)
			if multis.Load() != test.multis || deletes.Load() != test.deletes {
				t.Errorf("%d hand-overs and %d deletions were sent; want %d and %d", multis.Load(), deletes.Load(), test.multis, test.deletes)
			}
			if _, err := g.other.Stat(g.ctx, g.place.Path); (err == nil) != test.stays {
				t.Errorf("afterwards a look says %v", err)
			}
			if n := g.s.Counters().Fallbacks; n != test.fallbacks {
				t.Errorf("%d fallbacks are counted; want %d", n, test.fallbacks)
			}
			if n := g.s.Places(); n != 0 {
				t.Errorf("%d places are remembered", n)
			}
			if !g.s.Identified() {
				t.Error("the session believes that it may not write to its places")
			}
		})
	}
}

// The caller's context ends while the answer is awaited. What was sent is not sent again.
func TestAHandOverThatWasSentOutlivesItsCaller(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, to(srv))
	place, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureLine)
	if err != nil {
		t.Fatal(err)
	}
	patience, cancel := context.WithCancel(ctx)
	goOn := make(chan struct{})
	var multis atomic.Int64
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op != zkserver.OpMulti {
			return zkserver.Fault{}
		}
		multis.Add(1)
		cancel()
		return zkserver.Fault{Hold: goOn}
	})
	done := s.Handoff(patience, place)
	close(goOn)
	if err := <-done; err != nil || multis.Load() != 1 {
		t.Errorf("%v, sent %d times", err, multis.Load())
	}
}

// brittle reports that a hand-over could not be written, though it has arrived.
type brittle struct {
	net.Conn
	arrived func()
	gone    func() <-chan struct{} // the session knows that the connection is lost
	once    *atomic.Bool
}

func (c brittle) Write(frame []byte) (int, error) {
	n, err := c.Conn.Write(frame)
	if len(frame) < 12 || zkserver.Op(int32(binary.BigEndian.Uint32(frame[8:]))) != zkserver.OpMulti || !c.once.CompareAndSwap(false, true) {
		return n, err
	}
	c.arrived()
	_ = c.Conn.Close()
	<-c.gone()
	return 0, errors.New("not today")
}

// Whoever cannot write a hand-over does not know whether it has arrived.
func TestAHandOverThatWasNotWrittenMayHaveArrived(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	other := open(t, to(srv))
	var place session.BareZnode
	arrived := func() {
		for there := true; there; {
			exists, watch, err := other.ExistsW(ctx, place.Path)
			if err != nil {
				t.Error(err)
				return
			}
			if there = exists; there {
				_ = other.Wait(ctx, "the hand-over", watch.Fired())
			}
		}
	}
	var lost <-chan struct{}
	gone := func() <-chan struct{} { return lost }
	once := new(atomic.Bool)
	s, err := session.Open(ctx, to(srv), func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return brittle{c, arrived, gone, once}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	once.Store(true) // for parents, which are made by a transaction too
	if place, _, err = s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureLine); err != nil {
		t.Fatal(err)
	}
	if lost, err = s.Connected(ctx); err != nil {
		t.Fatal(err)
	}
	once.Store(false)
	if err := <-s.Handoff(ctx, place); err != nil {
		t.Errorf("told %v", err)
	}
	if !once.Load() {
		t.Error("the case was not met")
	}
}

// stranger gives another identity than the session's, as a server takes it that hashes it
// in another way.
type stranger struct{ net.Conn }

func (c stranger) Write(frame []byte) (int, error) {
	return c.Conn.Write(bytes.Replace(frame, []byte(":handoff"), []byte(":another"), 1))
}

// A place that its own session may not write to is deleted, and is the last one.
func TestAPlaceThatMayNotBeWritten(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s, err := session.Open(ctx, to(srv), func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return stranger{c}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	place, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureLine)
	if err != nil || !s.CreatesBare() {
		t.Fatalf("%v; it takes places: %v", err, s.CreatesBare())
	}
	if err := <-s.Handoff(ctx, place); err != nil {
		t.Errorf("told %v", err)
	}
	if n := s.Counters().Fallbacks; n != 1 || s.CreatesBare() {
		t.Errorf("%d fallbacks are counted; it takes places: %v", n, s.CreatesBare())
	}
	if _, err := s.Stat(ctx, place.Path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("afterwards a look says %v", err)
	}
}

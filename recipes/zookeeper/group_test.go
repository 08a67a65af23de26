package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// costs checks what f costs the server in writes, reads and watch events.
func costs(t *testing.T, srv *zkserver.Server, what string, writes, reads, events int64, f func()) {
	t.Helper()
	before := srv.Counters()
	f()
	if got := srv.Counters().Sub(before); got.Writes != writes || got.Reads != reads || got.WatchEvents != events {
		t.Errorf("%s costs %d writes, %d reads, %d watch events; want %d, %d, %d",
			what, got.Writes, got.Reads, got.WatchEvents, writes, reads, events)
	}
}

// shape lists the nodes below path, with the varying parts of their names
// replaced.
func shape(srv *zkserver.Server, path string) string {
	var names []string
	for _, n := range srv.Tree() {
		if name, ok := strings.CutPrefix(n.Path, path+"/"); ok {
			if at := strings.Index(name, "_c_"); at >= 0 && len(name) >= at+3+36 {
				name = name[:at+3] + "<guid>" + name[at+3+36:]
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestGroupCosts(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, srv), bounded(t)
	g := must.Get(s.Group("/g", recipes.GroupConfig{}))(t)
	must.Get(g.Join(ctx, nil))(t) // makes the path
	var m recipes.Membership
	costs(t, srv, "joining", 1, 1, 0, func() { m = must.Get(g.Join(ctx, nil))(t) })
	costs(t, srv, "updating", 1, 0, 0, func() { _ = m.Update(ctx, []byte("x")) })
	costs(t, srv, "listing two members", 0, 3, 0, func() { _, _ = g.Members(ctx) })
	costs(t, srv, "leaving", 1, 0, 1, func() { _ = m.Leave(ctx) })
	named := must.Get(s.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
	costs(t, srv, "joining by name", 1, 2, 0, func() { m = must.Get(named.Join(ctx, nil))(t) })
	if got, want := shape(srv, "/g"), "_c_<guid>-member-0000000000 ann"; got != want {
		t.Errorf("znodes %q; want %q", got, want)
	}
	snapshots := must.Get(g.Watch(ctx))(t)
	next := func(n int) {
		t.Helper()
		for len(<-snapshots) != n {
		}
	}
	next(2)
	costs(t, srv, "the update that a watch sees", 1, 1, 1, func() {
		_ = m.Update(ctx, []byte("y"))
		next(2)
	})
}

// No recipe polls: a member and one who watches the group send nothing but pings.
func TestAGroupAtRestCostsNothing(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		g := must.Get(s.Group("/g", recipes.GroupConfig{}))(t)
		must.Get(g.Join(ctx, nil))(t)
		<-must.Get(g.Watch(ctx))(t)
		idle(t, srv)
	})
}

// Names without a GUID: two sessions, and two calls of one session, want one
// name at a time, and replies are lost. Exactly one gets it.
func TestOneNameIsGivenOnce(t *testing.T) {
	srv := embedded(t)
	a, b, ctx := open(t, srv), open(t, srv), bounded(t)
	creates := 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCreate && r.SessionID == a.ID() && strings.HasPrefix(r.Path, "/g/") {
			if creates++; creates <= 2 {
				return zkserver.Fault{DropReply: true}
			}
		}
		return zkserver.Fault{}
	})
	results := make(chan error)
	for _, s := range []recipes.Client{a, a, b} {
		g := must.Get(s.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
		go func() {
			_, err := g.Join(ctx, nil)
			results <- err
		}()
	}
	given := 0
	for range 3 {
		switch err := <-results; {
		case err == nil:
			given++
		case !errors.Is(err, recipes.ErrNodeExists):
			t.Error(err)
		}
	}
	if given != 1 {
		t.Errorf("the name was given %d times", given)
	}
}

// etcd#22082, for names that the application chose: a deletion that is sent again
// must not hit the next owner of the name.
func TestALeaveSentAgainDoesNotHitTheNextMember(t *testing.T) {
	srv := embedded(t)
	a, b, ctx := open(t, srv), open(t, srv), bounded(t)
	ga := must.Get(a.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
	gb := must.Get(b.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
	m := must.Get(ga.Join(ctx, nil))(t)
	joined := make(chan recipes.Membership, 1)
	deletes := 0
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID != a.ID() {
			return zkserver.Fault{}
		}
		if r.Op == zkserver.OpDelete {
			if deletes++; deletes == 1 {
				return zkserver.Fault{DropReply: true}
			}
		} else if deletes == 1 && len(joined) == 0 && r.Op == zkserver.OpExists {
			next, err := gb.Join(ctx, []byte("next"))
			if err != nil {
				t.Error(err)
			}
			joined <- next
		}
		return zkserver.Fault{}
	})
	if err := m.Leave(ctx); err != nil {
		t.Error(err)
	}
	select {
	case next := <-joined:
		if err := next.Write(ctx); err != nil {
			t.Errorf("the next member: %v", err)
		}
	default:
		t.Fatal("the case was not met")
	}
}

// The group node is a container, which the server may reap when the last member
// has left (CURATOR-308).
func TestAGroupSurvivesItsReapedNode(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, srv), bounded(t)
	for range 3 {
		g := must.Get(s.Group("/reaped/g", recipes.GroupConfig{Name: "ann"}))(t)
		m := must.Get(g.Join(ctx, nil))(t)
		if err := m.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		del := must.Get(must.Get(s.Group("/tool", recipes.GroupConfig{}))(t).Join(ctx, nil))(t)
		if err := del.Write(ctx, recipes.Delete("/reaped/g", recipes.AnyVersion), recipes.Delete("/reaped", recipes.AnyVersion)); err != nil {
			t.Fatal(err)
		}
	}
}

// The reply to an update is lost, and the server refuses to tell what has become of it.
func TestAnUpdateThatCannotBeLookedAfterIsUnknown(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	s := open(t, srv)
	member := must.Get(must.Get(s.Group("/g", recipes.GroupConfig{}))(t).Join(ctx, nil))(t)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		return zkserver.Fault{DropReply: r.Op == zkserver.OpSetData, Throttle: r.Op == zkserver.OpExists}
	})
	err := member.Update(ctx, []byte("x"))
	srv.SetFault(nil)
	for _, want := range []error{recipes.ErrUnknownOutcome, recipes.ErrThrottled} {
		if !errors.Is(err, want) {
			t.Errorf("the error is %v; want %v", err, want)
		}
	}
}

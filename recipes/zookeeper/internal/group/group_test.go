package group_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestGroupCosts(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	g := must.Get(s.Group("/g", recipes.GroupConfig{}))(t)
	must.Get(g.Join(ctx, nil))(t) // creates the path
	var m recipes.Membership
	zktest.Costs(t, srv, "joining", 1, 1, 0, func() { m = must.Get(g.Join(ctx, nil))(t) })
	zktest.Costs(t, srv, "updating", 1, 0, 0, func() { _ = m.Update(ctx, []byte("x")) })
	zktest.Costs(t, srv, "listing two members", 0, 3, 0, func() { _, _ = g.Members(ctx) })
	zktest.Costs(t, srv, "leaving", 1, 0, 1, func() { _ = m.Leave(ctx) })
	named := must.Get(s.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
	zktest.Costs(t, srv, "joining by name", 1, 2, 0, func() { m = must.Get(named.Join(ctx, nil))(t) })
	if got, want := zktest.Shape(srv, "/g"), "_c_<guid>-member-0000000000 ann"; got != want {
		t.Errorf("znodes %q; want %q", got, want)
	}
	snapshots := must.Get(g.Watch(ctx))(t)
	next := func(n int) {
		t.Helper()
		for len(<-snapshots) != n {
		}
	}
	next(2)
	zktest.Costs(t, srv, "the update that a watch sees", 1, 1, 1, func() {
		_ = m.Update(ctx, []byte("y"))
		next(2)
	})
}

// A member, and a session that watches the group, send nothing but pings.
func TestAGroupAtRestCostsNothing(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		g := must.Get(s.Group("/g", recipes.GroupConfig{}))(t)
		must.Get(g.Join(ctx, nil))(t)
		<-must.Get(g.Watch(ctx))(t)
		zktest.Idle(t, srv)
	})
}

// Two sessions, and two calls of one session, join under the same name at the same time, and
// replies are lost. Exactly one call gets the name.
func TestOneNameIsGivenOnce(t *testing.T) {
	srv := zktest.Embedded(t)
	a, b, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
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

// etcd#22082, for names that the application chooses: a deletion that is sent again must not
// delete the znode of the next owner of the name.
func TestALeaveSentAgainDoesNotHitTheNextMember(t *testing.T) {
	srv := zktest.Embedded(t)
	a, b, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
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
	must.Report(t, m.Leave(ctx))
	select {
	case next := <-joined:
		if err := next.Write(ctx); err != nil {
			t.Errorf("the next member: %v", err)
		}
	default:
		t.Fatal("the case was not met")
	}
}

// The znode of the group is a container. The server may delete it when the last member has left
// (CURATOR-308).
func TestAGroupSurvivesTheDeletionOfItsContainer(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	for range 3 {
		g := must.Get(s.Group("/reaped/g", recipes.GroupConfig{Name: "ann"}))(t)
		m := must.Get(g.Join(ctx, nil))(t)
		must.Do(t, m.Leave(ctx))
		del := must.Get(must.Get(s.Group("/tool", recipes.GroupConfig{}))(t).Join(ctx, nil))(t)
		must.Do(t, del.Write(ctx, recipes.Delete("/reaped/g", recipes.AnyVersion), recipes.Delete("/reaped", recipes.AnyVersion)))
	}
}

// The reply to an update is lost, and the server refuses the read that would show its outcome.
func TestAnUpdateThatCannotBeCheckedIsUnknown(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
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

func TestAGroupInTheDialectOfKazoo(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		theirs := s.Make(s.Path+"/"+strings.ReplaceAll(uuid.NewString(), "-", "")+"__party__", []byte("theirs"), zk.FlagEphemeral)
		s.Make(s.Path+"/stranger", nil, zk.FlagEphemeral)
		g := must.Get(s.Session().Group(s.Path, recipes.GroupConfig{Dialect: recipes.Kazoo}))(s.T)
		m := must.Get(g.Join(s.Ctx, []byte("ours")))(s.T)
		if name := strings.TrimSuffix(m.Znode(), "__party__"); len(name) != len(s.Path)+1+32 {
			t.Errorf("ours is %s", m.Znode())
		}
		members := must.Get(g.Members(s.Ctx))(s.T)
		if len(members) != 2 || members[0].Znode != theirs || string(members[1].Data) != "ours" {
			t.Errorf("the members are %+v", members)
		}
		if watched := <-must.Get(g.Watch(s.Ctx))(s.T); len(watched) != 2 {
			t.Errorf("watched %+v", watched)
		}
		s.Is(m.Update(s.Ctx, []byte{0xff}), recipes.ErrInvalid)
		_, err := g.Join(s.Ctx, []byte{0xff})
		s.Is(err, recipes.ErrInvalid)
		_, err = s.Session().Group(s.Path, recipes.GroupConfig{Dialect: recipes.Kazoo, Name: "me"})
		s.Is(err, recipes.ErrInvalid)
		must.Report(t, m.Leave(s.Ctx))
		if all := must.Get(must.Get(s.Session().Group(s.Path, recipes.GroupConfig{Dialect: recipes.Curator}))(s.T).Members(s.Ctx))(s.T); len(all) != 2 {
			t.Errorf("in Curator's dialect the members are %+v", all)
		}
	})
}

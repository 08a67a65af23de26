package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
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
	var results []<-chan zktest.Outcome[recipes.Membership]
	for _, s := range []recipes.Client{a, a, b} {
		g := must.Get(s.Group("/g", recipes.GroupConfig{Name: "ann"}))(t)
		results = append(results, zktest.Go(ctx, func(ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }))
	}
	given := 0
	for _, joined := range results {
		switch err := (<-joined).Err; {
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
			must.Report(t, err)
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

// In kazoo's dialect, other ephemeral children are not members. In Curator's, all of them are.
func TestAGroupInTheDialectOfKazoo(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, _ *zkserver.Server) {
		s.Make(s.Path+"/stranger", nil, zk.FlagEphemeral)
		g := must.Get(s.Session().Group(s.Path, recipes.GroupConfig{Dialect: recipes.Kazoo}))(t)
		m := must.Get(g.Join(s.Ctx, nil))(t)
		if members := must.Get(g.Members(s.Ctx))(t); len(members) != 1 || members[0].Znode != m.Znode() {
			t.Errorf("the members are %+v", members)
		}
		s.Is(m.Update(s.Ctx, []byte{0xff}), recipes.ErrInvalid)
		curators := must.Get(s.Session().Group(s.Path, recipes.GroupConfig{Dialect: recipes.Curator}))(t)
		if members := must.Get(curators.Members(s.Ctx))(t); len(members) != 2 {
			t.Errorf("in Curator's dialect the members are %+v", members)
		}
	})
}

func TestNamesCosts(t *testing.T) {
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		n := zktest.NamesAt(t, s, "/n")
		if err := n.RegisterPersistent(ctx, "first", nil); err != nil { // creates the path and the receipt
			t.Fatal(err)
		}
		var r recipes.Registration
		zktest.Costs(t, srv, "registering", 1, 2, 0, func() { r = must.Get(n.Register(ctx, "db", nil))(t) })
		zktest.Costs(t, srv, "registering for good", 1, 0, 0, func() { _ = n.RegisterPersistent(ctx, "mail", nil) })
		zktest.Costs(t, srv, "looking up", 0, 1, 0, func() { _, _ = n.Lookup(ctx, "db") })
		zktest.Costs(t, srv, "listing three", 0, 4, 0, func() { _, _ = n.List(ctx) })
		records := must.Get(n.Watch(ctx, "db"))(t)
		<-records
		// Waiting sends nothing.
		zktest.Idle(t, srv)
		zktest.Costs(t, srv, "the update that a watch sees", 1, 1, 1, func() {
			_ = r.Update(ctx, []byte("x"))
			<-records
		})
		zktest.Costs(t, srv, "the first to be unregistered in a directory", 4, 5, 0, func() { _ = n.Unregister(ctx, "mail", 0) })
		must.Do(t, n.RegisterPersistent(ctx, "mail", nil))
		zktest.Costs(t, srv, "unregistering what was for good", 1, 1, 0, func() { _ = n.Unregister(ctx, "mail", 0) })
		if got, want := zktest.Shape(srv, "/n"), "_c_3-deletions _c_<guid>-receipt-0000000000 db first"; got != want {
			t.Errorf("znodes %q; want %q", got, want)
		}
	})
}

// ZooKeeper compares only versions. Between the read and the write, the name is unregistered and
// registered again, and has the same version.
func TestANameThatWasReplacedIsNotUnregistered(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first %t", first), func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				session := s.Session()
				n, theirs := zktest.NamesAt(t, session, s.Path), zktest.NamesAt(t, s.Session(), s.Path)
				if !first {
					must.Do(t, errors.Join(n.RegisterPersistent(s.Ctx, "other", nil), n.Unregister(s.Ctx, "other", 0)))
				}
				must.Do(t, theirs.RegisterPersistent(s.Ctx, "db", nil))
				token := must.Get(n.Lookup(s.Ctx, "db"))(t).Token
				met := zktest.Between(srv, session, func(r zkserver.Request) bool {
					return r.Op == zkserver.OpMulti && strings.Contains(r.Path, "-receipt-")
				}, func() {
					must.Do(t, errors.Join(theirs.Unregister(s.Ctx, "db", token), theirs.RegisterPersistent(s.Ctx, "db", []byte("theirs"))))
				})
				if err := n.Unregister(s.Ctx, "db", token); !met() || !errors.Is(err, recipes.ErrBadVersion) {
					t.Errorf("met %t: %v", met(), err)
				}
				if r := must.Get(n.Lookup(s.Ctx, "db"))(t); string(r.Data) != "theirs" {
					t.Errorf("%+v", r)
				}
				if all := must.Get(n.List(s.Ctx))(t); len(all) != 1 {
					t.Errorf("the names are %+v", all)
				}
			})
		})
	}
}

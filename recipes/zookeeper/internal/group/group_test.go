package group_test

import (
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

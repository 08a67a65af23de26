package znode_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// The znode is replaced after it was read. Then the session learns the later count: it reads the count
// itself, or another goroutine of the session does. The change must not depend on that count.
func TestACountIsOlderThanTheRead(t *testing.T) {
	for _, known := range []bool{true, false} {
		srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
		s := must.Get(session.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}, nil))(t)
		must.Do(t, s.Provide(ctx, "/dir/k"))
		if known {
			must.Get(s.ReadDeletions(ctx, "/dir"))(t)
		}
		reads := 0
		now := must.Get(znode.ReadCounted(ctx, s, "/dir/k", znode.Purpose{Compare: true}, func() (*session.Stat, error) {
			stat, err := s.Stat(ctx, "/dir/k")
			if reads++; reads == 1 {
				count := must.Get(s.ReadDeletions(ctx, "/dir"))(t)
				var replace session.Txn
				replace.Set(count.Path, nil, count.Version)
				replace.Delete("/dir/k", recipes.AnyVersion)
				replace.Create("/dir/k", []byte("theirs"), false)
				must.Do(t, s.Commit(ctx, replace))
				if s.ForgetDeletions("/dir"); known {
					must.Get(s.ReadDeletions(ctx, "/dir"))(t)
				}
			}
			return &stat, err
		}))(t)
		if current := must.Get(s.Stat(ctx, "/dir/k"))(t); !known && now.Stat.Czxid != current.Czxid {
			t.Errorf("the znode was not read after the count: %+v; it is %+v", *now.Stat, current)
		}
		var mine session.Txn
		now.Set(&mine, []byte("mine"))
		if err := s.Commit(ctx, mine); known != errors.Is(err, recipes.ErrBadVersion) {
			t.Errorf("known %t: %v", known, err)
		}
		must.Report(t, s.Close(ctx))
	}
}

// Clients create the znode that counts the deletions at the same time, and the directory is replaced
// before it is created. No directory has the count of an earlier one.
func TestADirectoryHasNoCountOfAnEarlierOne(t *testing.T) {
	zktest.OnEmbedded(t, func(sc *zktest.Scene, srv *zkserver.Server) {
		s := must.Get(session.Open(sc.Ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}}, nil))(t)
		defer func() { must.Report(t, s.Close(sc.Ctx)) }()
		sc.Make(sc.Path, nil, 0)
		var before int64
		met := false
		replace := func() {
			_, stat, err := sc.Raw.Get(sc.Path)
			before = stat.Czxid
			children, _, listErr := sc.Raw.Children(sc.Path)
			must.Do(t, errors.Join(err, listErr))
			for _, name := range children {
				must.Do(t, sc.Raw.Delete(sc.Path+"/"+name, -1))
			}
			must.Do(t, sc.Raw.Delete(sc.Path, -1))
			sc.Make(sc.Path, nil, 0)
		}
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if !met && r.Op == zkserver.OpMulti && strings.Contains(r.Path, "-guard-") {
				met = true
				replace()
			}
			return zkserver.Fault{}
		})
		d := must.Get(s.ReadDeletions(sc.Ctx, sc.Path))(t)
		if children := sc.Children(sc.Path); !met || len(children) != 1 || sc.Path+"/"+children[0] != d.Path {
			t.Errorf("met %t: the directory has %v; the count is %s, and the czxid was %x", met, children, d.Path, before)
		}
	})
}

package session_test

import (
	"maps"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// An observer that runs for months loses its connection many times. The goroutines that wait for
// the watches of a connection end with it.
func TestAnObserverKeepsNothingOfFormerConnections(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		s, closeSession := zktest.OpenIn(t, srv)
		defer closeSession()
		c := zktest.ConfigAt(t, s, "/config")
		must.Get(c.Set(t.Context(), "a", nil, recipes.AnyRevision))(t)
		<-must.Get(c.WatchTree(t.Context()))(t)
		listeners := func() int {
			synctest.Wait()
			stacks := make([]byte, 1<<20)
			return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*mirror).listen")
		}
		before := listeners()
		for range 5 {
			lost := false
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				lost = true
				srv.SetFault(nil)
				return zkserver.Fault{CloseBefore: true}
			})
			must.Get(c.Get(t.Context(), "a"))(t)
			if !lost {
				t.Fatal("the connection was not lost")
			}
		}
		if after := listeners(); before == 0 || after != before {
			t.Errorf("%d goroutines that listen, and %d after five connections", before, after)
		}
	})
}

// While the server throttles, an observer repeats only the reads that were refused.
func TestAThrottledObserverReadsOnlyWhatIsMissing(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		t.Cleanup(func() { srv.Close() })
		watches, other := zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv)
		theirs := zktest.ConfigAt(t, other, "/c")
		must.Get(theirs.Set(t.Context(), "a/b/c", nil, recipes.AnyRevision))(t)
		tree := must.Get(zktest.ConfigAt(t, watches, "/c").WatchTree(t.Context()))(t)
		<-tree

		const throttled = 5
		asked := make(map[string]int)
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID != watches.ID() {
				return zkserver.Fault{}
			}
			asked[r.Op.String()+" "+r.Path]++
			return zkserver.Fault{Throttle: r.Path == "/c/a/new" && asked["getData /c/a/new"] <= throttled}
		})
		must.Get(theirs.Set(t.Context(), "a/new", nil, recipes.AnyRevision))(t)
		<-tree
		srv.SetFault(nil)
		want := map[string]int{"getChildren2 /c/a": 1, "getData /c/a/new": throttled + 1, "getChildren2 /c/a/new": 1}
		if !maps.Equal(asked, want) {
			t.Errorf("asked %v; want %v", asked, want)
		}
	})
}

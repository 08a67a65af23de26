package session_test

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// While the server throttles, an observer repeats only the reads that were refused.
func TestAThrottledObserverReadsOnlyWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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

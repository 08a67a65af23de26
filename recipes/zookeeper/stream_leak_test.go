package zookeeper_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Who watches for months sees the connection lost many times: what waited for the
// watches of a connection goes with it.
func TestAStreamKeepsNothingOfFormerConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		s, closeSession := openIn(t, srv)
		defer closeSession()
		c := configAt(t, s, "/config")
		must[recipes.Revision](t)(c.Set(t.Context(), "a", nil, recipes.AnyRevision))
		<-must[<-chan []recipes.Entry](t)(c.WatchTree(t.Context()))
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
			must[recipes.Entry](t)(c.Get(t.Context(), "a"))
			if !lost {
				t.Fatal("the connection was not lost")
			}
		}
		if after := listeners(); before == 0 || after != before {
			t.Errorf("%d goroutines that listen, and %d after five connections", before, after)
		}
	})
}

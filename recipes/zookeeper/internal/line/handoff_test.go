package line

import (
	"context"
	"net"
	gopath "path"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Contenders of a session share the watch on a znode. So after a reconnect, another contender can
// make it fire while this one's own znode is not watched.
func TestNoEventCountsAfterTheConnectionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, ctx := zkserver.New(zkserver.Config{}), t.Context()
		defer srv.Close()
		s := must.Get(session.Open(ctx, recipes.SessionConfig{Servers: []string{"server"}}, func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go srv.ServeConn(server)
			return client, nil
		}))(t)
		defer s.Close(ctx)
		l := &Line{Session: s, Path: "/l", Markers: []string{"lock-"}}
		for range 20 { // select chooses at random
			var places [2]session.BareZnode
			for i := range places {
				var err error
				places[i], _, err = s.CreateBare(ctx, l.Path, "lock-", nil, false, s.EnsureQueuePath)
				must.Do(t, err)
			}
			w, ended := &handoffWaiter{line: l, bare: places[1]}, make(chan struct{})
			o, err := w.awaitPredecessor(ctx, gopath.Base(places[0].Path), ended, func() {
				must.Do(t, <-s.Handoff(ctx, places[0]))
				synctest.Wait()
				close(ended)
			})
			if o != reconnected || err != nil {
				t.Fatalf("outcome %d, %v", o, err)
			}
			must.Do(t, <-s.DeleteBare(places[1]))
		}
	})
}

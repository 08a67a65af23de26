package zookeeper_test

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Another client makes a missing parent first. Nothing is left to make then: a second
// attempt could put a parent that stays in the place of a container that was reaped.
func TestAParentThatAnotherMakesFirstIsNotMadeAgain(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		session := s.session()
		asked, goOn := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == session.ID() && r.Op == zkserver.OpMulti {
				close(asked)
				return zkserver.Fault{Hold: goOn}
			}
			return zkserver.Fault{}
		})
		set := make(chan error)
		go func() {
			set <- must[recipes.Barrier](t)(session.Barrier("/parent/barrier")).Set(s.ctx, nil)
		}()
		<-asked
		srv.SetFault(nil)
		if _, err := s.raw.Create("/parent", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		if err := <-set; err != nil {
			t.Fatal(err)
		}
		if n := must[recipes.Stats](t)(session.Stats(s.ctx)).ByKind["create"]; n != 1 {
			t.Errorf("%d creations beside the parent's; the barrier's is one", n)
		}
	})
}

package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const (
	noRead   = zk.PermAll &^ zk.PermRead
	noWrite  = zk.PermAll &^ zk.PermWrite
	noCreate = zk.PermAll &^ zk.PermCreate
	noDelete = zk.PermAll &^ zk.PermDelete
)

// denial is a znode whose permissions are restricted for all clients during an operation.
type denial struct {
	znode string // created if it does not exist
	perms int32
	then  func() // checks the state after the operation; may be nil
}

// A change that the server denies fails at once. It is not mistaken for a change at which
// another client was faster: a call retries that, and would never end.
func TestADeniedRequestIsReported(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for i := 0; o.isDenied(t, i); i++ {
			}
		})
	}
}

// isDenied runs the operation under its i-th denial, and returns false if it has none.
func (o operation) isDenied(t *testing.T, i int) (more bool) {
	onStage(t, func(s *stage) {
		do := o.prepare(s)
		if more = i < len(do.denied); !more {
			return
		}
		dial := zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return s.dial(s.ctx, "", "") })
		operator, _, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second, dial, zk.WithLogInfo(false))
		s.ok(err)
		defer operator.Close()
		d := do.denied[i]
		if !s.present(d.znode) {
			s.ok(zktest.BarrierAt(t, s.other, d.znode).Set(s.ctx, nil))
		}
		must.Get(operator.SetACL(d.znode, zk.WorldACL(d.perms), -1))(t)
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute) // virtual
		defer cancel()
		if err := do.act(ctx); !errors.Is(err, recipes.ErrAccessDenied) {
			s.Errorf("%s: the error is %v", d.znode, err)
		}
		if d.then != nil {
			d.then()
		}
		s.started.Wait()
		calm()
		if s.below(stagePath+"/claims/") > 0 {
			s.Error("a claim is left, so no client can receive the element")
		}
	})
	return more
}

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
	noWrite  = zk.PermAll &^ zk.PermWrite
	noCreate = zk.PermAll &^ zk.PermCreate
	noDelete = zk.PermAll &^ zk.PermDelete
)

// denial is a permission on a znode that no client has during an operation.
type denial struct {
	znode string // is made if it does not exist
	perms int32
	then  func() // looks at what has become of it; may be nil
}

// A change that the server does not allow is said, at once, and not taken for one that
// another client was faster with: that would be tried for ever.
func TestADeniedRequestIsReported(t *testing.T) {
	for _, o := range operations() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for i := 0; o.isDenied(t, i); i++ {
			}
		})
	}
}

// isDenied runs the operation under its i-th denial. It returns false if there is no such
// denial.
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
			s.Error("a claim is left, which keeps the element from everybody")
		}
	})
	return more
}

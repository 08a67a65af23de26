package zookeeper_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A write that the server refuses has not happened. Nothing is unknown, where every write
// was answered.
func TestARefusedWriteLeavesNothingUnknown(t *testing.T) {
	for _, o := range append(dataOperations(), standingOperations()...) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for at := int64(1); ; at++ {
				var writes atomic.Int64
				synctest.Test(t, func(t *testing.T) {
					srv := zkserver.New(zkserver.Config{})
					t.Cleanup(func() { srv.Close() })
					l := &late{T: t, srv: srv, victim: openVirtual(t, srv), other: openVirtual(t, srv)}
					act := o.prepare(l)
					synctest.Wait()
					srv.SetFault(func(r zkserver.Request) zkserver.Fault {
						switch r.Op {
						case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpDelete, zkserver.OpSetData, zkserver.OpMulti:
						default:
							return zkserver.Fault{}
						}
						return zkserver.Fault{Throttle: r.SessionID == l.victim.ID() && writes.Add(1) == at}
					})
					err := act(l.ctx())
					srv.SetFault(nil)
					if err != nil && (!errors.Is(err, recipes.ErrThrottled) || errors.Is(err, recipes.ErrUnknownOutcome)) {
						t.Errorf("write %d is refused: %v", at, err)
					}
					if err != nil && o.happened != nil && o.happened(l) {
						t.Errorf("write %d is refused: %v, and it has happened", at, err)
					}
					synctest.Wait()
				})
				if t.Failed() || writes.Load() < at {
					return
				}
			}
		})
	}
}

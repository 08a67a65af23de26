package server_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	pb "github.com/zkrecipes/zkrecipes/plugin/proto/zkrecipes/v1"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The connection of calls breaks while a hold is resumed. The host considers itself the
// holder, so the grant is still held, and the repeated call finds it.
func TestAResumeThatIsCutOffReleasesNothing(t *testing.T) {
	t.Parallel()
	m := startMoving(t, zktest.Embedded(t))
	during := []zkserver.Op{zkserver.OpGetChildren2, zkserver.OpGetData} // the requests that resume a hold
	resumed := make([]*pb.Grant, len(during))
	for i := range during {
		id := strconv.Itoa(i)
		var err error
		if resumed[i], err = m.acquire(&pb.AcquireRequest{RequestId: id, Path: "/held" + id}); err != nil {
			t.Fatal(err)
		}
	}
	m.way.Cut()

	var mu sync.Mutex
	var breaks context.CancelFunc // the connection of the running call
	second := hostOf(t, m.zk, server.Config{Open: zookeeper.Open, Resume: zookeeper.Resume,
		Intercept: func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			mu.Lock()
			breaks = cancel
			mu.Unlock()
			return handle(ctx, r)
		}})
	second.open(resumeOf(m.opened))
	for i, op := range during {
		id := strconv.Itoa(i)
		ask := &pb.AcquireRequest{RequestId: id, Path: "/held" + id, Resumed: resumed[i]}
		var once sync.Once
		m.zk.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op == op {
				once.Do(func() {
					mu.Lock()
					defer mu.Unlock()
					breaks()
				})
			}
			return zkserver.Fault{}
		})
		if again, err := second.acquire(ask); err == nil {
			t.Errorf("cut off at %v, and answered with %v", op, again)
		}
		m.zk.SetFault(nil)
		if again, err := second.acquire(ask); err != nil || again.GetToken() != resumed[i].GetToken() {
			t.Errorf("cut off at %v, and resumed again: %v, %v", op, again, err)
		}
	}
	second.dropRest()
	for i, op := range during {
		id := strconv.Itoa(i)
		if _, err := second.grants.Write(second.ctx, &pb.WriteRequest{Session: second.session, RequestId: id}); err != nil {
			t.Errorf("cut off at %v, and written: %v", op, err)
		}
		if _, err := second.grants.Release(second.ctx, &pb.ReleaseRequest{Session: second.session, RequestId: id}); err != nil {
			t.Errorf("cut off at %v, and released: %v", op, err)
		}
	}
}

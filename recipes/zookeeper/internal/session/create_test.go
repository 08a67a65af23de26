package session_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// before35 starts a server that answers as ZooKeeper 3.4 does.
func before35(t *testing.T) *zkserver.Server {
	t.Helper()
	srv := must.Get(zkserver.Listen(zkserver.Config{MaxSessionTimeout: time.Minute, Like: zkserver.Release34}))(t)
	t.Cleanup(func() { srv.Close() })
	return srv
}

// PITFALLS 64: ZooKeeper 3.4 refuses create2 as unimplemented, and closes the connection.
func TestAServerWithoutCreate2(t *testing.T) {
	srv := before35(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	for _, path := range []string{"/one", "/one", "/other"} {
		hold := must.Get(must.Get(s.Lock(path, recipes.LockConfig{}))(t).Acquire(ctx))(t)
		must.Report(t, hold.Release(ctx))
	}
	if stats := must.Get(s.Stats(ctx))(t); stats.ByKind["create2"] != 1 || stats.Reconnects != 1 {
		t.Errorf("asked for %d places, on %d connections; one and one more have to do", stats.ByKind["create2"], stats.Reconnects)
	}
}

// ZooKeeper 3.4 has no containers either, and refuses their flag. After the first refusal, the
// session creates persistent znodes, which remain when they are empty.
func TestAServerWithoutContainers(t *testing.T) {
	srv := before35(t)
	ctx, s := zktest.Bounded(t), zktest.Open(t, srv)
	sent := func() (multi, create int64) {
		stats := must.Get(s.Stats(ctx))(t)
		return stats.ByKind["multi"], stats.ByKind["create"]
	}
	for _, step := range []struct {
		path          string
		multi, create int64 // requests so far
	}{
		{"/a/b/barrier", 2, 3}, // containers /a/b, whose parent is missing, and /a; then three persistent znodes
		{"/c/d/barrier", 2, 7}, // persistent /c/d, whose parent is missing, and then three
	} {
		must.Do(t, must.Get(s.Barrier(step.path))(t).Set(ctx, nil))
		if multi, create := sent(); multi != step.multi || create != step.create {
			t.Errorf("%s: %d containers and %d plain znodes were asked for so far; want %d and %d", step.path, multi, create, step.multi, step.create)
		}
		must.Do(t, must.Get(s.Barrier(step.path))(t).Remove(ctx))
	}
	for range 3 { // the server deletes one level at a time
		srv.RunContainerCheck()
	}
	for _, path := range []string{"/a", "/a/b", "/c", "/c/d"} {
		if !zktest.Exists(srv, path) {
			t.Errorf("%s was a container", path)
		}
	}
}

// Another client creates a missing parent first. The session must not create it again: if the
// container was deleted as empty since, a second attempt could replace it by a persistent znode.
func TestAParentThatAnotherClientCreatesIsNotCreatedAgain(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		session := s.Session()
		asked, proceed := make(chan struct{}), make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == session.ID() && r.Op == zkserver.OpMulti {
				close(asked)
				return zkserver.Fault{Hold: proceed}
			}
			return zkserver.Fault{}
		})
		set := make(chan error)
		go func() {
			set <- must.Get(session.Barrier("/parent/barrier"))(t).Set(s.Ctx, nil)
		}()
		<-asked
		srv.SetFault(nil)
		if _, err := s.Raw.Create("/parent", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		close(proceed)
		must.Do(t, <-set)
		if n := must.Get(session.Stats(s.Ctx))(t).ByKind["create"]; n != 1 {
			t.Errorf("%d creations beside the parent's; the barrier's is one", n)
		}
	})
}

// TestNoZnodeHasNullData: Curator's LeaderLatch and LeaderSelector read all children of
// their path, and throw when one has null data instead of empty data.
func TestNoZnodeHasNullData(t *testing.T) {
	srv, ctx := zktest.Embedded(t), zktest.Bounded(t)
	s := zktest.Open(t, srv)
	write := func(h recipes.Grant, err error) {
		t.Helper()
		if err == nil { // also creates the guard
			err = h.Write(ctx, recipes.Create(h.Znode()[:len("/app/x")]+"/written", nil))
		}
		must.Do(t, err)
	}
	for i, strategy := range recipes.Strategies() {
		path := "/app/" + strconv.Itoa(i)
		write(must.Get(s.Lock(path, recipes.LockConfig{Strategy: strategy}))(t).Acquire(ctx))
	}
	write(must.Get(s.Election("/app/e", recipes.ElectionConfig{}))(t).Campaign(ctx, nil))
	write(must.Get(s.SharedLock("/app/s", recipes.SharedLockConfig{}))(t).AcquireWrite(ctx))
	write(must.Get(s.PriorityLock("/app/w", recipes.PriorityLockConfig{}))(t).AcquireWrite(ctx))
	write(must.Get(s.Group("/app/g", recipes.GroupConfig{Name: "n"}))(t).Join(ctx, nil))
	must.Get(must.Get(s.DoubleBarrier("/app/d", recipes.DoubleBarrierConfig{Size: 1}))(t).Enter(ctx, nil))(t)
	must.Get(must.Get(s.Queue("/app/q", recipes.QueueConfig{Capacity: 1}))(t).Put(ctx, nil))(t)
	must.Get(must.Get(s.Counter("/app/c", recipes.CounterConfig{}))(t).Add(ctx, 1))(t)
	for _, err := range []error{
		must.Get(s.Barrier("/app/b"))(t).Set(ctx, nil),
		must.Get(s.Names("/app/n"))(t).RegisterPersistent(ctx, "n", nil),
		must.Get(s.Transaction("/app/t", recipes.TransactionConfig{}))(t).Begin(ctx, nil, "1"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	checked := 0
	for _, n := range srv.Tree() {
		if len(n.Path) > len("/app") {
			checked++
		}
		if n.Data == nil && len(n.Path) >= len("/app") && n.Path[:len("/app")] == "/app" {
			t.Errorf("%s has null data", n.Path)
		}
	}
	if checked < 30 {
		t.Errorf("only %d znodes", checked)
	}
}

package session_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
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

// The refusal of create2 may arrive before the connection ends. The creation then falls back, as
// it does when it finds the connection closed.
func TestARefusedCreate2IsNoBareZnode(t *testing.T) {
	s, ctx := open(t, to(before35(t))), zktest.Bounded(t)
	must.Do(t, s.Ensure(ctx, "/line"))
	_, _, err := s.CreateBare(ctx, "/line", "lock-", nil, false, s.EnsureQueuePath)
	if !errors.Is(err, session.ErrNoBareZnode) || s.CreatesBare() {
		t.Errorf("%v; want ErrNoBareZnode, and no later attempt", err)
	}
}

// Without a list of the session's ephemeral znodes, a resumed session could leave an unknown
// contender in a wait queue.
func TestAServerBefore36CannotDropTheRest(t *testing.T) {
	srv := before35(t)
	s := resume(t, to(srv), letGo(t, open(t, to(srv))))
	err := s.DropRest(zktest.Bounded(t), func(string) bool { return false })
	if !errors.Is(err, conn.Unimplemented) || !strings.Contains(err.Error(), "needs ZooKeeper 3.6") {
		t.Errorf("%v; want an error that names the version", err)
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
		must.Get(s.Raw.Create("/parent", nil, 0, zk.WorldACL(zk.PermAll)))(t)
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
		must.Report(t, err)
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

// CURATOR-498: the search by GUID found a znode of an expiring session, used it, and there were two
// leaders.
func TestAZnodeOfAnotherSessionIsNotUsed(t *testing.T) {
	zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
		ours, created := open(t, to(srv)), false
		must.Do(t, ours.Ensure(s.Ctx, "/owner"))
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if created || r.SessionID != ours.ID() || !zktest.Creates(r.Op) {
				return zkserver.Fault{}
			}
			created = true
			s.Make(r.Path, nil, zk.FlagEphemeral|zk.FlagSequence)
			return zkserver.Fault{CloseBefore: true}
		})
		if path, err := ours.CreateProtected(s.Ctx, "/owner", "lock-", nil); !errors.Is(err, recipes.ErrInternal) {
			t.Errorf("created %q, %v", path, err)
		}
	})
}

// A server answers create of a container with the result of create2. A client that took that
// for a refusal would also create a plain znode.
func TestAContainerIsAskedForOnce(t *testing.T) {
	check := func(t *testing.T, addr string) {
		ctx := zktest.Bounded(t)
		s := open(t, recipes.SessionConfig{Servers: []string{addr}})
		top := fmt.Sprintf("/asked-once-%x", s.ID())
		ensure := func(path string) recipes.Stats {
			t.Helper()
			must.Do(t, s.Ensure(ctx, path))
			must.Get(s.Stat(ctx, path))(t)
			return s.Counters()
		}
		for _, step := range []struct {
			path  string
			multi int64 // requests so far
		}{
			{top, 1},
			{top, 2}, // the znode exists
			{top + "/a/b", 5},
		} {
			sent := ensure(step.path)
			if multi, create := sent.ByKind["multi"], sent.ByKind["create"]; multi != step.multi || create != 0 {
				t.Errorf("%s: so far %d containers and %d plain znodes were asked for; want %d and none", step.path, multi, create, step.multi)
			}
		}
		must.Report(t, s.DeleteOnce(ctx, top+"/a/b", recipes.AnyVersion)) // the server removes the others
	}
	t.Run("embedded", func(t *testing.T) { check(t, embedded(t).Addr()) })
	t.Run("real", func(t *testing.T) { check(t, ensembletest.Shared(t).Addrs()[0]) })
}

// A server refuses some parents with the same code as a server that has no containers. The
// session still creates containers.
func TestABadParentLeavesTheContainers(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	if err := s.Ensure(ctx, "/a\x01"); !errors.Is(err, recipes.ErrInvalid) { // recipes refuse such a path
		t.Fatalf("a parent that no server creates: %v", err)
	}
	must.Do(t, s.Ensure(ctx, "/a"))
	if sent := s.Counters().ByKind; sent["multi"] != 2 || sent["create"] != 1 {
		t.Errorf("%d containers and %d plain znodes were asked for; want 2 and 1, the bad one", sent["multi"], sent["create"])
	}
}

// Any other refusal is the result. A session that may not create a container may not create a
// plain znode either, and a server that throttles may support containers.
func TestARefusedContainerIsNotReplaced(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	srv.SetFault(func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{Throttle: r.Op == zkserver.OpMulti} })
	if err := s.Ensure(ctx, "/a"); !errors.Is(err, recipes.ErrThrottled) {
		t.Errorf("from a busy server: %v", err)
	}
	if sent := s.Counters().ByKind; sent["multi"] != 1 || sent["create"] != 0 {
		t.Errorf("%d containers and %d plain znodes were asked for; want 1 and none", sent["multi"], sent["create"])
	}
}

// A server without containers refuses to create one before it checks whether the znode exists. An
// existing znode counts as success for the plain creation.
func TestAServerWithoutContainersIsAskedOnce(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{Like: zkserver.Release34}))(t)
	t.Cleanup(func() { srv.Close() })
	ctx := zktest.Bounded(t)
	for _, who := range []string{"the creator", "a session that finds it"} {
		s := open(t, to(srv))
		for range 3 {
			must.Do(t, s.Ensure(ctx, "/a"))
		}
		if sent := s.Counters().ByKind; sent["multi"] != 1 || sent["create"] != 3 {
			t.Errorf("%s asks for %d containers and %d plain znodes; want 1 and 3", who, sent["multi"], sent["create"])
		}
	}
}

// Since 3.9, the ACL decides whether a session may read the record of its znode. Without it the
// name is not registered, so it stays free.
func TestANameThatCannotBeReadIsFree(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	cfg := to(srv)
	cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll &^ recipes.PermRead, Scheme: "world", ID: "anyone"}}
	if stat, err := open(t, cfg).CreateNamed(ctx, "/name", nil); !errors.Is(err, recipes.ErrAccessDenied) {
		t.Errorf("%+v, %v", stat, err)
	}
	if zktest.Exists(srv, "/name") {
		t.Error("the name is taken")
	}
}

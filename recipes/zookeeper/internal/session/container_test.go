package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The server does not show which znodes are containers, so the test waits until it deletes the
// empty parents.
func TestParentsAreRemovedByTheServerWhenEmpty(t *testing.T) {
	check := func(t *testing.T, addr string, reap func()) {
		ctx := zktest.Bounded(t)
		s := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{addr}, Chroot: "/containers/chroot"}))(t)
		defer s.Close(ctx)
		l := must.Get(s.Lock("/a/lock", recipes.LockConfig{}))(t)
		hold := must.Get(l.Acquire(ctx))(t)
		raw := zktest.Raw(t, addr)
		must.Do(t, hold.Release(ctx))
		for _, path := range []string{"/containers/chroot/a/lock", "/containers/chroot/a", "/containers/chroot", "/containers"} {
			waitGone(ctx, t, raw, path, reap)
		}
		// The lock works again.
		hold = must.Get(l.Acquire(ctx))(t)
		must.Do(t, hold.Release(ctx))
	}
	t.Run("embedded", func(t *testing.T) {
		srv := zktest.Embedded(t)
		check(t, srv.Addr(), srv.RunContainerCheck)
	})
	t.Run("real", func(t *testing.T) { check(t, ensembletest.Shared(t).Addrs()[0], func() {}) })
}

func waitGone(ctx context.Context, t *testing.T, raw *zk.Conn, path string, reap func()) {
	t.Helper()
	for {
		exists, _, changed, err := raw.ExistsW(path)
		must.Do(t, err)
		if !exists {
			return
		}
		reap()
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s stays", path)
		}
	}
}

// stays are uses of recipes whose path must remain when it has no children: it keeps a number,
// values, or the counter of names that may be used only once.
var stays = map[string]func(context.Context, *testing.T, recipes.Client, string){
	"counter": func(ctx context.Context, t *testing.T, s recipes.Client, path string) {
		must.Get(zktest.CounterAt(t, s, path).Add(ctx, 1))(t)
	},
	"latch": func(ctx context.Context, t *testing.T, s recipes.Client, path string) {
		must.Get(zktest.LatchAt(t, s, path, 2).CountDown(ctx))(t)
	},
	"configuration": func(ctx context.Context, t *testing.T, s recipes.Client, path string) {
		c := zktest.ConfigAt(t, s, path)
		must.Get(c.Set(ctx, "a", nil, recipes.AnyRevision))(t)
		must.Do(t, c.Delete(ctx, "a", recipes.AnyRevision))
	},
	"configuration, a key below a key": func(ctx context.Context, t *testing.T, s recipes.Client, path string) {
		c := zktest.ConfigAt(t, s, path)
		must.Get(c.Set(ctx, "a/b", nil, recipes.AnyRevision))(t)
		for _, key := range []string{"a/b", "a"} {
			must.Do(t, c.Delete(ctx, key, recipes.AnyRevision))
		}
	},
	"queue": func(ctx context.Context, t *testing.T, s recipes.Client, path string) {
		q := must.Get(s.Queue(path, recipes.QueueConfig{}))(t)
		must.Get(q.Put(ctx, nil))(t)
		must.Get(q.Take(ctx))(t)
	},
}

// staysEmpty closes the session and checks that the server does not reap the path.
func staysEmpty(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session, path string) {
	t.Helper()
	must.Do(t, s.Close(ctx))
	for range 3 { // the server deletes one level at a time
		srv.RunContainerCheck()
	}
	if !zktest.Exists(srv, path) {
		t.Error("it was removed when its session was closed")
	}
}

// The reply to the creation of the path is lost, and another client creates a sibling before the
// next request. So no client can tell whether the path was created.
func TestLastingPathsAreNoContainers(t *testing.T) {
	for name, use := range stays {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Embedded(t)
			s, other, ctx := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Bounded(t)
			must.Do(t, zktest.BarrierAt(t, other, "/app/there").Set(ctx, nil))
			lost := false
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				creation := r.Op == zkserver.OpCreate || r.Op == zkserver.OpMulti
				if r.SessionID != s.ID() || !creation || r.Path != "/app/it" || lost {
					return zkserver.Fault{}
				}
				lost = true
				must.Report(t, zktest.BarrierAt(t, other, "/app/beside").Set(ctx, nil))
				return zkserver.Fault{CloseBefore: true}
			})
			use(ctx, t, s, "/app/it")
			if !lost {
				t.Error("the case was not met")
			}
			staysEmpty(ctx, t, srv, s, "/app/it")
		})
	}
}

// Another client deletes the path while a change is in flight. The session's receipt is deleted
// with it, and the session creates both again.
func TestAPathDeletedInUseComesBackToStay(t *testing.T) {
	for name, use := range stays {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Embedded(t)
			s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
			raw := zktest.Raw(t, srv.Addr())
			use(ctx, t, s, "/app/it")
			removed := false
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.SessionID == s.ID() && r.Op == zkserver.OpMulti && !removed {
					removed = true
					removeAll(t, raw, "/app/it")
				}
				return zkserver.Fault{}
			})
			use(ctx, t, s, "/app/it")
			if !removed {
				t.Error("the case was not met")
			}
			staysEmpty(ctx, t, srv, s, "/app/it")
		})
	}
}

func removeAll(t *testing.T, raw *zk.Conn, path string) {
	names, _, err := raw.Children(path)
	must.Report(t, err)
	for _, name := range names {
		removeAll(t, raw, path+"/"+name)
	}
	must.Report(t, raw.Delete(path, -1))
}

// A contender in the wait queue writes to the path, and another client deletes the path first.
// The contender returns the same error as a waiter whose path is deleted.
func TestAPathThatIsRemovedBeforeItIsWrittenTo(t *testing.T) {
	for name, recipe := range map[string]func(*testing.T, recipes.Client, string) func(context.Context) (recipes.Hold, error){
		"claim of a priority lock": func(t *testing.T, s recipes.Client, path string) func(context.Context) (recipes.Hold, error) {
			l := must.Get(s.PriorityLock(path, recipes.PriorityLockConfig{}))(t)
			return func(ctx context.Context) (recipes.Hold, error) { return l.AcquireWrite(ctx) }
		},
		"permits of a semaphore": func(t *testing.T, s recipes.Client, path string) func(context.Context) (recipes.Hold, error) {
			return must.Get(s.Semaphore(path, recipes.SemaphoreConfig{Permits: 2}))(t).Acquire
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.OnEmbedded(t, func(s *zktest.Scene, srv *zkserver.Server) {
				session := s.Session()
				acquire := recipe(t, session, s.Path)
				must.Get(s.Raw.Create(s.Path, nil, 0, zk.WorldACL(zk.PermAll)))(t)
				writes, proceed := make(chan struct{}), make(chan struct{})
				srv.SetFault(func(q zkserver.Request) (f zkserver.Fault) {
					if q.SessionID == session.ID() && q.Op == zkserver.OpMulti && q.Path == s.Path {
						close(writes)
						f.Hold = proceed
					}
					return f
				})
				acquired := make(chan error, 1)
				go func() {
					_, err := acquire(s.Ctx)
					acquired <- err
				}()
				<-writes
				names, _, err := s.Raw.Children(s.Path)
				if err != nil || len(names) != 1 {
					t.Fatalf("%v (%v)", names, err)
				}
				s.Remove(s.Path + "/" + names[0])
				close(proceed)
				if err := <-acquired; !errors.Is(err, recipes.ErrRemoved) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

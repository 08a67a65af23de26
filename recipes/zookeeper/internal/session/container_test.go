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

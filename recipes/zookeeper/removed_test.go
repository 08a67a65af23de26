package zookeeper_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A contender that stands in line writes to the path, which is removed before that
// is carried out: it is told what it would have been told while it waited.
func TestAPathThatIsRemovedBeforeItIsWrittenTo(t *testing.T) {
	for name, recipe := range map[string]func(*testing.T, recipes.Session, string) func(context.Context) (recipes.Hold, error){
		"claim of a priority lock": func(t *testing.T, s recipes.Session, path string) func(context.Context) (recipes.Hold, error) {
			l := must[recipes.PriorityLock](t)(s.PriorityLock(path, recipes.PriorityLockConfig{}))
			return func(ctx context.Context) (recipes.Hold, error) { return l.AcquireWrite(ctx) }
		},
		"permits of a semaphore": func(t *testing.T, s recipes.Session, path string) func(context.Context) (recipes.Hold, error) {
			return must[recipes.Semaphore](t)(s.Semaphore(path, recipes.SemaphoreConfig{Permits: 2})).Acquire
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEmbedded(t, func(s *scene, srv *zkserver.Server) {
				session := s.session()
				acquire := recipe(t, session, s.path)
				if _, err := s.raw.Create(s.path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
				writes, goOn := make(chan struct{}), make(chan struct{})
				srv.SetFault(func(q zkserver.Request) (f zkserver.Fault) {
					if q.SessionID == session.ID() && q.Op == zkserver.OpMulti && q.Path == s.path {
						close(writes)
						f.Hold = goOn
					}
					return f
				})
				acquired := make(chan error, 1)
				go func() {
					_, err := acquire(s.ctx)
					acquired <- err
				}()
				<-writes
				names, _, err := s.raw.Children(s.path)
				if err != nil || len(names) != 1 {
					t.Fatalf("%v (%v)", names, err)
				}
				s.remove(s.path + "/" + names[0])
				close(goOn)
				if err := <-acquired; !errors.Is(err, recipes.ErrRemoved) {
					t.Errorf("told %v", err)
				}
			})
		})
	}
}

package zookeeper_test

import (
	"context"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A contender of Curator's makes its lease before it may have it. Such a lease is not
// taken up as a permit, and its contender does not keep its place.
func TestALeaseThatWaitsIsNotTakenUp(t *testing.T) {
	onEmbedded(t, func(s *scene, srv *zkserver.Server) {
		semaphore := func(in recipes.Session) recipes.Semaphore {
			return must[recipes.Semaphore](t)(in.Semaphore(s.path, recipes.SemaphoreConfig{Permits: 1, Dialect: recipes.Curator}))
		}
		must[recipes.Hold](t)(semaphore(s.session()).Acquire(s.ctx))
		waiter := s.session()
		waits := make(chan error, 1)
		go func() {
			_, err := semaphore(waiter).Acquire(s.ctx)
			waits <- err
		}()
		lease, czxid := "", int64(0)
		for lease == "" {
			for _, name := range s.children(s.path + "/leases") {
				if _, stat, err := s.raw.Get(s.path + "/leases/" + name); err == nil && stat.EphemeralOwner == waiter.ID() {
					lease, czxid = s.path+"/leases/"+name, stat.Czxid
				}
			}
			time.Sleep(time.Millisecond)
		}
		next := move(t, s.addr, waiter)
		if err := <-waits; err == nil {
			t.Error("acquired")
		}
		again := semaphore(next).(interface {
			taker[recipes.Hold]
			Rejoin(context.Context, string, bool) (recipes.Hold, error)
		})
		_, err := again.TakeUp(s.ctx, lease, recipes.Token(czxid))
		s.is(err, recipes.ErrNotHeld)
		_, err = again.Rejoin(s.ctx, s.path+"/locks/"+s.children(s.path + "/locks")[0], false)
		s.is(err, recipes.ErrUnsupported)
		if err := next.(movable).DropRest(s.ctx); err != nil {
			t.Error(err)
		}
		if names := s.children(s.path + "/leases"); len(names) != 1 {
			t.Errorf("the leases are %q", names)
		}
	})
}

package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A successor that has gone before it claimed is in nobody's way: not in that of a later
// holder, who names another one. One that is there is.
func TestASuccessorThatHasGoneIsForgotten(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
		type waiter struct {
			place   recipes.Place
			session recipes.Session
			granted chan recipes.PriorityHold
		}
		join := func() *waiter {
			w := &waiter{session: openVirtual(t, srv), granted: make(chan recipes.PriorityHold, 1)}
			joined := make(chan recipes.Place, 1)
			l := must[recipes.PriorityLock](t)(w.session.PriorityLock("/s", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }}))
			go func() {
				if h, err := l.AcquireWrite(ctx); err == nil {
					w.granted <- h
				}
			}()
			w.place = <-joined
			synctest.Wait()
			return w
		}
		h := must[recipes.PriorityHold](t)(must[recipes.PriorityLock](t)(s.PriorityLock("/s", recipes.PriorityLockConfig{})).AcquireWrite(ctx))
		next, last, dies := join(), join(), join()
		goOn := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.SessionID == dies.session.ID() && r.Op == zkserver.OpMulti {
				return zkserver.Fault{Hold: goOn}
			}
			return zkserver.Fault{}
		})
		if err := h.HandOff(ctx, dies.place.Znode); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it claims
		srv.ExpireSession(dies.session.ID())
		close(goOn)
		h = <-next.granted
		srv.SetFault(nil)
		if err := h.HandOff(ctx, last.place.Znode); err != nil {
			t.Errorf("hand-off to another: %v", err)
		}
		if h = <-last.granted; h == nil {
			t.Fatal("the last one is not granted")
		}
		if err := h.HandOff(ctx, dies.place.Znode); !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("hand-off to one that has gone: %v", err)
		}
		if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A hold whose session ends while it is handed off does not stand any more. HandOff says so
// as every other call of the hold does.
func TestAHandOffWhoseSessionEndsIsNotHeld(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Session) {
		waits := openVirtual(t, srv)
		joined := make(chan recipes.Place, 1)
		h := must[recipes.PriorityHold](t)(must[recipes.PriorityLock](t)(s.PriorityLock("/s", recipes.PriorityLockConfig{})).AcquireWrite(ctx))
		granted := make(chan error, 1)
		l := must[recipes.PriorityLock](t)(waits.PriorityLock("/s", recipes.PriorityLockConfig{Joined: func(p recipes.Place) { joined <- p }}))
		go func() {
			_, err := l.AcquireWrite(ctx)
			granted <- err
		}()
		successor := <-joined
		synctest.Wait()
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			return zkserver.Fault{ExpireBefore: r.SessionID == s.ID()}
		})
		err := h.HandOff(ctx, successor.Znode)
		if !errors.Is(err, recipes.ErrNotHeld) || !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("%v; want ErrNotHeld, for the session is lost", err)
		}
		if err := <-granted; err != nil {
			t.Errorf("the waiter: %v", err)
		}
	})
}

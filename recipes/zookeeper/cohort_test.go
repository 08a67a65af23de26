package zookeeper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAWriteThatIsLateForItsHoldIsRefusedByTheServer: it has passed all that can
// be checked here when its hold is released and handed on, and is then sent. The
// znode that it is guarded by is there, for the next hold has the same.
func TestAWriteThatIsLateForItsHoldIsRefusedByTheServer(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, srv), bounded(t)
	waits := make(chan struct{})
	l := must[recipes.Lock](t)(s.Lock("/late", recipes.LockConfig{Cohort: 1}))
	waiting := must[recipes.Lock](t)(s.Lock("/late", recipes.LockConfig{Cohort: 1, Joined: func(recipes.Place) { close(waits) }}))
	first := must[recipes.Hold](t)(l.Acquire(ctx))
	next := make(chan recipes.Hold, 1)
	go func() {
		h, err := waiting.Acquire(ctx)
		if err != nil {
			t.Error(err)
		}
		next <- h
	}()
	<-waits
	released := false
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		// The guard that a write makes, a round trip before it is sent.
		if creates(r.Op) && strings.Contains(r.Path, "/guards-") && strings.Contains(r.Path, "guard-") && !released {
			released = true
			if err := first.Release(ctx); err != nil {
				t.Error(err)
			}
		}
		return zkserver.Fault{}
	})
	err := first.Write(ctx, recipes.Create("/late/data", nil))
	if !released {
		t.Fatal("the case was not met")
	}
	second := <-next
	for _, n := range srv.Tree() {
		if n.Path == "/late/data" && n.Stat.Czxid > int64(second.Token()) {
			t.Errorf("the first hold wrote at %d, the second has token %d", n.Stat.Czxid, second.Token())
		}
	}
	if err != nil && !errors.Is(err, recipes.ErrReleased) {
		t.Error(err)
	}
	if err := errors.Join(second.Write(ctx), second.Release(ctx)); err != nil {
		t.Error(err)
	}
}

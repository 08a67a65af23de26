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

// TestWhatACohortCostsWhoeverIsAlone: a stamp, and to read what it is to change.
func TestWhatACohortCostsWhoeverIsAlone(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, srv), bounded(t)
	keep := must[recipes.Lock](t)(s.Lock("/alone/other", recipes.LockConfig{})) // so that the parents stay
	if _, err := keep.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	cost := func(path string, cohort int) (reads, writes int64) {
		l := must[recipes.Lock](t)(s.Lock(path, recipes.LockConfig{Cohort: cohort}))
		for range 2 { // the first creates the path
			before := must[recipes.Stats](t)(s.Stats(ctx))
			h := must[recipes.Hold](t)(l.Acquire(ctx))
			if err := h.Release(ctx); err != nil {
				t.Fatal(err)
			}
			now := must[recipes.Stats](t)(s.Stats(ctx))
			reads, writes = now.Reads-before.Reads, now.Writes-before.Writes
		}
		return reads, writes
	}
	reads, writes := cost("/alone/plain", 0)
	if r, w := cost("/alone/cohort", 1); r != reads+1 || w != writes+1 {
		t.Errorf("with a cohort %d reads and %d writes, without %d and %d; want one more of each", r, w, reads, writes)
	}
}

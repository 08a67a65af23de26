package host_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestAPluginIsKilledAgainAndAgain kills the plugins of a session that has one hold and one
// waiter for every two kills. No hold is lost, no waiter is granted, and the host keeps nothing of a dead plugin.
func TestAPluginIsKilledAgainAndAgain(t *testing.T) {
	kills := testall.Count(8, 200)
	t.Run("embedded", func(t *testing.T) {
		unlessReal(t)
		killedAgainAndAgain(t, survive(t), kills)
	})
	t.Run("real", func(t *testing.T) {
		killedAgainAndAgain(t, surviveAt(t, ensembletest.Shared(t).Addrs()), kills)
	})
}

func killedAgainAndAgain(t *testing.T, v *surviving, kills int) {
	var held []recipes.Hold
	life, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waits, cancelWaits := context.WithCancel(life)
	defer cancelWaits()
	var waiting sync.WaitGroup
	for i := range kills / 2 {
		h := must.Get(lockAt(t, v.session, manyPath(i)).Acquire(life))(t)
		held = append(held, h)
		joined := make(chan struct{})
		l := must.Get(v.session.Lock(manyPath(i), recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
		waiting.Go(func() {
			if h, err := l.Acquire(waits); err == nil {
				t.Errorf("granted beside the holder: %s", h.Znode())
			}
		})
		closes(t, "joined", joined)
	}
	v.kill()
	before, heap := countResources(t), inUse()
	var took []time.Duration
	for range kills {
		took = append(took, v.kill())
		for len(v.changes) > 0 { // a Change keeps its plugin in memory
			<-v.changes
		}
		for i, h := range held {
			if err := h.Err(); err != nil {
				t.Fatalf("hold %d: %v", i, err)
			}
			line, err := v.rival.Contenders(life, manyPath(i))
			if err != nil || len(line.Contenders) != 2 || line.Contenders[0].Znode != h.Znode() {
				t.Fatalf("hold %s: the wait queue is %+v: %v", h.Znode(), line, err)
			}
		}
	}
	eventually(t, func() string {
		after, now := countResources(t), inUse()
		return unless(after.within(before) && now < heap+2<<20,
			"afterwards there is %+v and %d KiB of heap; before there was %+v and %d KiB", after, now>>10, before, heap>>10)
	})
	cancelWaits()
	waiting.Wait()
	for _, h := range held {
		must.Report(t, h.Release(life))
	}
	slices.Sort(took)
	t.Logf("from SIGKILL to served, of %d: p50 %v, p90 %v, p99 %v, worst %v", len(took), took[len(took)/2], took[len(took)*9/10], took[len(took)*99/100], took[len(took)-1])
}

func manyPath(i int) string { return fmt.Sprintf("/many-%d", i) }

// inUse returns the size of the heap after a garbage collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

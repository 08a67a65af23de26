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

// TestAPluginIsKilledAgainAndAgain: with half as many holds as kills, and as many that wait.
// None is lost, nobody else is granted, and nothing of a dead plugin stays with its host.
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
	waits, giveUp := context.WithCancel(life)
	defer giveUp()
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
	before, heap := belongings(t), inUse()
	var took []time.Duration
	for range kills {
		took = append(took, v.kill())
		for len(v.changes) > 0 { // they keep plugins
			<-v.changes
		}
		for i, h := range held {
			if err := h.Err(); err != nil {
				t.Fatalf("hold %d: %v", i, err)
			}
			line, err := v.rival.Contenders(life, manyPath(i))
			if err != nil || len(line.Contenders) != 2 || line.Contenders[0].Znode != h.Znode() {
				t.Fatalf("hold %s: in line %+v: %v", h.Znode(), line, err)
			}
		}
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		after, now := belongings(t), inUse()
		if after.within(before) && now < heap+2<<20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("afterwards there is %+v and %d KiB of heap; before there was %+v and %d KiB", after, now>>10, before, heap>>10)
		}
	}
	giveUp()
	waiting.Wait()
	for _, h := range held {
		must.Report(t, h.Release(life))
	}
	slices.Sort(took)
	t.Logf("from SIGKILL to served, of %d: p50 %v, p90 %v, p99 %v, worst %v", len(took), took[len(took)/2], took[len(took)*9/10], took[len(took)*99/100], took[len(took)-1])
}

func manyPath(i int) string { return fmt.Sprintf("/many-%d", i) }

// inUse is the heap that is in use after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

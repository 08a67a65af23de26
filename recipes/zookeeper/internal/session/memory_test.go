package session_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"golang.org/x/sync/errgroup"
)

// The memory of a session with default settings follows what it sends and receives. Earlier, each
// session kept two buffers of the largest packet, 2 MiB.
func TestAWaitingSessionTakesLittleMemory(t *testing.T) {
	const (
		n    = 200
		most = 40 << 10 // bytes of heap and stacks; resident memory is less than a fifth larger
	)
	if race.Enabled {
		t.Skip("half of what a session takes would be the race detector's: .ci/test measures without it")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // leaktest has changed it; each collection shrinks stacks
	addrs, ctx := ensembletest.Shared(t).Addrs(), t.Context()
	open := func() recipes.Client {
		return must.Get(zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs}))(t)
	}
	first := open() // causes the allocations that all sessions share
	before := inUse()
	var waiting, all sync.WaitGroup
	waiting.Add(n)
	waits, giveUp := context.WithCancel(ctx)
	sessions := []recipes.Client{first}
	for range n {
		s := open()
		sessions = append(sessions, s)
		l := must.Get(s.Lock("/memory", recipes.LockConfig{Joined: func(recipes.Place) { waiting.Done() }}))(t)
		all.Go(func() {
			if hold, err := l.Acquire(waits); err == nil {
				<-hold.Done()
			}
		})
	}
	waiting.Wait()
	each := (inUse() - before) / n
	t.Logf("%d bytes a waiting session", each)
	if each > most {
		t.Errorf("a waiting session takes %d bytes of heap and stacks; want %d at most", each, most)
	}

	// The memory of a large element is freed.
	q := must.Get(first.Queue("/memory-queue", recipes.QueueConfig{}))(t)
	before = inUse()
	for range 4 {
		must.Get(q.Put(ctx, make([]byte, 512<<10)))(t)
		must.Get(q.Take(ctx))(t)
	}
	if grown := inUse() - before; grown > 256<<10 {
		t.Errorf("%d bytes are kept of four large elements", grown)
	}

	giveUp()
	for _, s := range sessions {
		all.Go(func() { s.Close(context.Background()) })
	}
	all.Wait()
}

// inUse returns the bytes of heap and stacks in use after two garbage collections. The second one
// frees the objects that finalizers and pools still referenced.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// BenchmarkWaitingSessions measures the resident memory of one session, idle and while its
// contender waits.
func BenchmarkWaitingSessions(b *testing.B) {
	const n = 5000
	addrs := ensembletest.Start(b, ensemble.Config{HeapMiB: 1024, NoSync: true}).Addrs()
	for range b.N {
		ctx, giveUp := context.WithCancel(b.Context())
		before := resident(b)
		sessions := make([]recipes.Client, n)
		var opening errgroup.Group
		opening.SetLimit(32)
		for i := range n {
			opening.Go(func() (err error) {
				sessions[i], err = zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs, SessionTimeout: 40 * time.Second})
				return err
			})
		}
		must.Do(b, opening.Wait())
		b.ReportMetric(float64(resident(b)-before)/n/1024, "KiB/idle-session")
		var waiting, all sync.WaitGroup
		waiting.Add(n)
		for _, s := range sessions {
			l := must.Get(s.Lock("/memory", recipes.LockConfig{Joined: func(recipes.Place) { waiting.Done() }}))(b)
			all.Go(func() {
				if hold, err := l.Acquire(ctx); err == nil {
					<-hold.Done()
				}
			})
		}
		waiting.Wait()
		b.ReportMetric(float64(resident(b)-before)/n/1024, "KiB/waiting-session")
		b.ReportMetric(0, "ns/op")
		giveUp()
		var closing sync.WaitGroup
		for _, s := range sessions {
			closing.Go(func() { s.Close(context.Background()) })
		}
		closing.Wait()
		all.Wait()
	}
}

// resident is this process's resident memory, in bytes, without garbage.
func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("no /proc")
	}
	var size, pages int64
	must.Get(fmt.Sscan(string(statm), &size, &pages))(b)
	return pages * int64(os.Getpagesize())
}

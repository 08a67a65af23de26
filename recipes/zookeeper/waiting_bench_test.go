package zookeeper_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
	"golang.org/x/sync/errgroup"
)

// BenchmarkWaitingSessions measures what a session takes of this process's
// resident memory, idle and while its contender waits.
func BenchmarkWaitingSessions(b *testing.B) {
	const n = 5000
	addrs := ensembletest.Start(b, ensemble.Config{HeapMiB: 1024, NoSync: true}).Addrs()
	for range b.N {
		ctx, giveUp := context.WithCancel(b.Context())
		before := resident(b)
		sessions := make([]recipes.Session, n)
		var opening errgroup.Group
		opening.SetLimit(32)
		for i := range n {
			opening.Go(func() (err error) {
				sessions[i], err = zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs, SessionTimeout: 40 * time.Second})
				return err
			})
		}
		if err := opening.Wait(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(resident(b)-before)/n/1024, "KiB/idle-session")
		var waiting, all sync.WaitGroup
		waiting.Add(n)
		for _, s := range sessions {
			l, err := s.Lock("/memory", recipes.LockConfig{Joined: func(recipes.Place) { waiting.Done() }})
			if err != nil {
				b.Fatal(err)
			}
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
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

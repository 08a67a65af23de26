package zookeeper_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A session with default settings takes the memory of what it sends and receives. It
// used to take two buffers of the largest packet, 2 MiB, for good.
func TestAWaitingSessionTakesLittleMemory(t *testing.T) {
	const n = 200
	most := int64(40 << 10) // bytes of heap and stacks; resident it is less than a fifth more
	if race.Enabled {
		most += most / 4 // it is 41 KiB with it, and 33 without
	}
	addrs, ctx := ensembletest.Shared(t).Addrs(), t.Context()
	open := func() recipes.Session {
		return must[recipes.Session](t)(zookeeper.Open(ctx, recipes.SessionConfig{Servers: addrs}))
	}
	first := open() // what is allocated once
	before := inUse()
	var waiting, all sync.WaitGroup
	waiting.Add(n)
	waits, giveUp := context.WithCancel(ctx)
	sessions := []recipes.Session{first}
	for range n {
		s := open()
		sessions = append(sessions, s)
		l := must[recipes.Lock](t)(s.Lock("/memory", recipes.LockConfig{Joined: func(recipes.Place) { waiting.Done() }}))
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

	// What a large element took is given back.
	q := must[recipes.Queue](t)(first.Queue("/memory-queue", recipes.QueueConfig{}))
	before = inUse()
	for range 4 {
		must[recipes.ElementID](t)(q.Put(ctx, make([]byte, recipes.DefaultMaxPacket/2)))
		must[recipes.Element](t)(q.Take(ctx))
	}
	if grown := inUse() - before; grown > recipes.DefaultMaxPacket/4 {
		t.Errorf("%d bytes are kept of four large elements", grown)
	}

	giveUp()
	for _, s := range sessions {
		all.Go(func() { s.Close(context.Background()) })
	}
	all.Wait()
}

// inUse returns the bytes of heap and stacks in use after garbage collections: the
// second frees what finalizers, and pools, held on to.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

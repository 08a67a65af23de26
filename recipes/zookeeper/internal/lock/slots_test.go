package lock_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// After the last sequence number of a path, contenders are ordered by creation. A claim creates
// its znode again, which would be behind the waiters. So the contender is refused, and leaves
// nothing behind.
func TestSlotsEndWithTheSequenceNumbers(t *testing.T) {
	srv := zktest.Embedded(t)
	s, ctx := zktest.Open(t, srv), zktest.Bounded(t)
	slots := must.Get(s.Slots("/stuck", recipes.SemaphoreConfig{Permits: 2}))(t)
	first := must.Get(slots.Acquire(ctx))(t) // creates the path
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if zktest.Creates(r.Op) {
			must.Report(t, srv.SetSequence("/stuck", math.MaxInt32))
		}
		return zkserver.Fault{}
	})
	if h, err := slots.Acquire(ctx); !errors.Is(err, recipes.ErrLimit) {
		t.Errorf("acquired %v, %v", h, err)
	}
	if there := must.Get(slots.Contenders(ctx))(t); len(there) != 1 || there[0].Znode != first.Znode() {
		t.Errorf("left: %v", there)
	}
	must.Report(t, errors.Join(first.Write(ctx), first.Release(ctx)))
}

// Data that does not fit into the transaction of a claim is refused before the contender waits.
func TestSlotsRefuseDataThatNoClaimHasRoomFor(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	s := must.Get(zookeeper.Open(ctx, recipes.SessionConfig{Servers: []string{srv.Addr()}, MaxPacket: 64 << 10}))(t)
	defer s.Close(ctx)
	for size := 63 << 10; size <= 64<<10; size += 32 {
		slots := must.Get(s.Slots("/large", recipes.SemaphoreConfig{Permits: 1, Data: []byte(strings.Repeat("x", size))}))(t)
		before := srv.Counters().Requests[zkserver.OpMulti]
		h, err := slots.Acquire(ctx)
		if err == nil {
			err = h.Release(ctx)
		} else if srv.Counters().Requests[zkserver.OpMulti] != before || !errors.Is(err, recipes.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
			return
		}
		if err != nil && !errors.Is(err, recipes.ErrTooLarge) {
			t.Fatal(err)
		}
	}
}

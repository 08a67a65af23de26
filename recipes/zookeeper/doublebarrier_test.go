package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func doubleBarrierAt(t *testing.T, s recipes.Recipes, path string, size int) recipes.DoubleBarrier {
	t.Helper()
	return must.Get(s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: size}))(t)
}

// entered has a member of each session enter, one after the other, and returns
// them in this order.
func entered(t *testing.T, ctx context.Context, srv *zkserver.Server, path string, sessions []recipes.Client) []recipes.Passage {
	t.Helper()
	in := make([]recipes.Passage, len(sessions))
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			p, err := doubleBarrierAt(t, s, path, len(sessions)).Enter(ctx, nil)
			if err != nil {
				t.Error(err)
			}
			in[i] = p
		})
		if i < len(sessions)-1 {
			atRest(t, srv, path, i+1)
		}
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return in
}

// atRest waits until a path has so many children and nothing has been sent for a
// while. On virtual time nobody has anything left to do then.
func atRest(t *testing.T, srv *zkserver.Server, path string, children int) {
	t.Helper()
	ctx := bounded(t)
	for last, calm := srv.Counters(), 0; calm < 10; {
		time.Sleep(2 * time.Millisecond)
		now := srv.Counters()
		n := 0
		for _, node := range srv.Tree() {
			if len(node.Path) > len(path)+1 && node.Path[:len(path)+1] == path+"/" {
				n++
			}
		}
		if calm++; n != children || now.Reads != last.Reads || now.Writes != last.Writes {
			calm = 0
		}
		last = now
		if ctx.Err() != nil {
			t.Fatalf("%s has %d children; want %d", path, n, children)
		}
	}
}

// "This means that only a single process wakes up on each node deletion except
// for the last node, which wakes up everyone when it is removed."
func TestADepartureWakesOne(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, first recipes.Client) {
		const size = 5
		sessions := []recipes.Client{first}
		for range size - 1 {
			sessions = append(sessions, openVirtual(t, srv))
		}
		in := entered(t, ctx, srv, "/b", sessions)
		atRest(t, srv, "/b", size+1)
		events := func() (n [size]int64) {
			for i, s := range sessions {
				n[i] = must.Get(s.Stats(ctx))(t).WatchEvents
			}
			return n
		}
		before := events()
		left := make(chan error, size)
		leave := func(i, children int, want [size]int64) {
			t.Helper()
			go func() { left <- in[i].Leave(ctx) }()
			atRest(t, srv, "/b", children)
			var got [size]int64
			for i, n := range events() {
				got[i] = n - before[i]
			}
			if i == 3 {
				got[3] = want[3] // the lowest may have gone before it is watched
			}
			if got != want {
				t.Errorf("when %d leaves the events are %v; want %v", i, got, want)
			}
			before = events()
		}
		// A deletion is always told to its own session too, which has watched its node.
		leave(0, 6, [size]int64{})              // the lowest waits for the highest
		leave(2, 5, [size]int64{2: 1})          // nobody waits for it
		leave(4, 4, [size]int64{0: 1, 4: 1})    // the highest: it wakes the lowest
		leave(1, 3, [size]int64{1: 1})          // now 3 is waited for
		leave(3, 0, [size]int64{2, 1, 1, 2, 1}) // it wakes the lowest, which leaves and wakes all
		for range size {
			if err := <-left; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDoubleBarrierCosts(t *testing.T) {
	onVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, s recipes.Client) {
		must.Get(must.Get(s.Group("/b", recipes.GroupConfig{Name: "x"}))(t).Join(ctx, nil))(t) // makes the path
		b := doubleBarrierAt(t, s, "/b", 3)
		passages := make(chan recipes.Passage, 3)
		enter := func() { passages <- must.Get(b.Enter(ctx, nil))(t) }
		costs(t, srv, "entering and waiting", 1, 4, 0, func() { go enter(); atRest(t, srv, "/b", 2) })
		costs(t, srv, "entering and waiting", 1, 4, 0, func() { go enter(); atRest(t, srv, "/b", 3) })
		// No recipe polls.
		idle(t, srv)
		// A look for foreign members, own node, look, list, ready; then all three read ready.
		costs(t, srv, "the last one's entering, of three", 2, 7, 1, func() {
			enter()
			atRest(t, srv, "/b", 5)
		})
		names := strings.Fields(shape(srv, "/b"))
		slices.Sort(names)
		if want := []string{
			"_c_<guid>-member-0000000001", "_c_<guid>-member-0000000002", "_c_<guid>-member-0000000003", "ready", "x",
		}; !slices.Equal(names, want) {
			t.Errorf("znodes %q; want %q", names, want)
		}
		in := []recipes.Passage{<-passages, <-passages, <-passages}
		slices.SortFunc(in, func(a, b recipes.Passage) int { return int(a.Token() - b.Token()) })
		left := make(chan error, 3)
		leave := func(i int) { go func() { left <- in[i].Leave(ctx) }() }
		costs(t, srv, "leaving, and waiting for the lowest", 1, 2, 1, func() { leave(2); atRest(t, srv, "/b", 4) })
		costs(t, srv, "leaving, and waiting for the lowest", 1, 2, 1, func() { leave(1); atRest(t, srv, "/b", 3) })
		costs(t, srv, "the last one leaves, while two wait for it", 1, 3, 1, func() { leave(0); atRest(t, srv, "/b", 1) })
		for range in {
			if err := <-left; err != nil {
				t.Error(err)
			}
		}
	})
}

// Members come, go, die, give up, and lose replies: nobody ever enters with fewer
// than the size, and everybody gets on.
func TestDoubleBarrierUnderDisturbance(t *testing.T) {
	srv := embedded(t)
	ctx := bounded(t)
	const size, members, rounds = 3, 5, 15
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch random.IntN(40) {
		case 0:
			return zkserver.Fault{DropReply: true}
		case 1:
			return zkserver.Fault{CloseBefore: true}
		}
		return zkserver.Fault{}
	})
	var generations sync.Map // a generation's first member: how many have entered
	var all sync.WaitGroup
	for range members {
		s := open(t, srv)
		b := doubleBarrierAt(t, s, "/b", size)
		all.Go(func() {
			for range rounds {
				mu.Lock()
				limit := time.Duration(1+random.IntN(30)) * 5 * time.Millisecond
				mu.Unlock()
				short, cancel := context.WithTimeout(ctx, limit)
				p, err := b.Enter(short, nil)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if len(p.Members()) != size {
					t.Errorf("entered with %v", p.Members())
				}
				key := fmt.Sprint(p.Members())
				if other, loaded := generations.LoadOrStore(p.Members()[0], key); loaded && other != key {
					t.Errorf("generations %s and %v overlap", key, other)
				}
				if err := p.Leave(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	n := 0
	generations.Range(func(any, any) bool { n++; return true })
	if n == 0 {
		t.Error("nobody has entered")
	}
	t.Logf("%d generations", n)
}

package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// entered has a member of each session enter, one after the other. It returns the passages in
// that order.
func entered(t *testing.T, ctx context.Context, srv *zkserver.Server, path string, sessions []recipes.Client) []recipes.Passage {
	t.Helper()
	in := make([]recipes.Passage, len(sessions))
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			p, err := doubleBarrierAt(t, s, path, len(sessions)).Enter(ctx, nil)
			must.Report(t, err)
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

// atRest waits until a path has that many children, and no request has been sent for a while.
// On virtual time all goroutines wait then.
func atRest(t *testing.T, srv *zkserver.Server, path string, children int) {
	t.Helper()
	ctx := zktest.Bounded(t)
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
	zktest.OnVirtualTime(t, func(ctx context.Context, t *testing.T, srv *zkserver.Server, first recipes.Client) {
		const size = 5
		sessions := []recipes.Client{first}
		for range size - 1 {
			sessions = append(sessions, zktest.OpenVirtual(t, srv))
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
				got[3] = want[3] // the lowest may be gone before 3 watches it
			}
			if got != want {
				t.Errorf("when %d leaves the events are %v; want %v", i, got, want)
			}
			before = events()
		}
		// The session that deletes its znode gets an event too, because it watches the znode.
		leave(0, 6, [size]int64{})              // the lowest waits for the highest
		leave(2, 5, [size]int64{2: 1})          // no member waits for this one
		leave(4, 4, [size]int64{0: 1, 4: 1})    // the highest wakes the lowest
		leave(1, 3, [size]int64{1: 1})          // the lowest waits for 3 now
		leave(3, 0, [size]int64{2, 1, 1, 2, 1}) // 3 wakes the lowest, which leaves and wakes all
		for range size {
			must.Report(t, <-left)
		}
	})
}

// A member counts another one, which dies before ready is created. The transaction that creates
// ready checks that each member exists.
func TestNoMemberEntersWithOneThatHasDied(t *testing.T) {
	zktest.OnVirtualTime(t, func(_ context.Context, t *testing.T, srv *zkserver.Server, dying recipes.Client) {
		ctx := zktest.Bounded(t)
		staying, late := zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv)
		go doubleBarrierAt(t, dying, "/pair", 2).Enter(ctx, nil)
		atRest(t, srv, "/pair", 1)
		met := zktest.Between(srv, staying, zktest.Op(zkserver.OpMulti), func() { srv.ExpireSession(dying.ID()) })
		in := enters(ctx, doubleBarrierAt(t, staying, "/pair", 2))
		// It lists the members again, finds itself alone, and waits.
		atRest(t, srv, "/pair", 1)
		if !met() {
			t.Fatal("the case was not met")
		}
		select {
		case <-in:
			t.Error("a member has entered alone")
		default:
			must.Get(doubleBarrierAt(t, late, "/pair", 2).Enter(ctx, nil))(t)
			must.Report(t, (<-in).Err)
		}
	})
}

// A member reads ready. Then ready is deleted and created again, with the same version, for
// members that have not read it yet. Before the member replaces ready, it reads ready again.
func TestReadyIsNotTakenForAnEarlierOne(t *testing.T) {
	zktest.OnVirtualTime(t, func(_ context.Context, t *testing.T, srv *zkserver.Server, _ recipes.Client) {
		ctx := zktest.Bounded(t)
		enter := func(s recipes.Client) <-chan zktest.Outcome[recipes.Passage] {
			return enters(ctx, doubleBarrierAt(t, s, "/pair", 2))
		}
		former := []recipes.Client{zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv)}
		passages := entered(t, ctx, srv, "/pair", former)
		dying, staying, late := zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv), zktest.OpenVirtual(t, srv)
		enter(dying)
		atRest(t, srv, "/pair", 4) // two members inside, ready, and dying
		stays := enter(staying)
		atRest(t, srv, "/pair", 5)

		// late has read the ready of the former members. Before it lists the members, the former
		// ones leave, dying and staying are admitted, and dying dies.
		read, waits := false, make(chan struct{})
		var inside recipes.Passage
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			switch {
			case r.SessionID != late.ID():
			case r.Op == zkserver.OpGetData && r.Path == "/pair/ready":
				read = true
			case r.Op == zkserver.OpGetChildren2 || r.Op == zkserver.OpGetChildren:
				if !read || inside != nil {
					break
				}
				left := zktest.GoDo(ctx, passages[0].Leave)
				must.Report(t, errors.Join(passages[1].Leave(ctx), <-left))
				inside = (<-stays).Got
				srv.ExpireSession(dying.ID())
			case inside != nil && r.Op == zkserver.OpGetData && r.Path == inside.Znode():
				close(waits)
			}
			return zkserver.Fault{}
		})
		joins := enter(late)
		select {
		case <-joins:
			t.Fatal("a member has entered with one that had entered with another member before")
		case <-waits:
		case <-ctx.Done():
			t.Fatal("the case was not met")
		}
		srv.SetFault(nil)
		must.Report(t, inside.Leave(ctx))
		last := enter(zktest.OpenVirtual(t, srv))
		if (<-joins).Err != nil || (<-last).Err != nil {
			t.Error("the next two have not entered")
		}
	})
}

func doubleBarrierAt(t *testing.T, s recipes.Recipes, path string, size int) recipes.DoubleBarrier {
	t.Helper()
	return must.Get(s.DoubleBarrier(path, recipes.DoubleBarrierConfig{Size: size}))(t)
}

// One member inside gives up leaving, and the other one dies. So the members that wait have to
// watch the last member inside themselves.
func TestTheNextEnterWhenTheLastInsideDies(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	sessions := []recipes.Client{zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)}
	enter := func(s recipes.Client) <-chan zktest.Outcome[recipes.Passage] {
		return enters(ctx, doubleBarrierAt(t, s, "/b", 2))
	}
	first, second := enter(sessions[0]), enter(sessions[1])
	quits, dies := <-first, <-second
	must.Do(t, errors.Join(quits.Err, dies.Err))
	gone, giveUp := context.WithCancel(ctx)
	giveUp()
	if err := quits.Got.Leave(gone); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	watching := make(chan struct{}, 100)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpGetData && r.Path == dies.Got.Znode() && r.SessionID != sessions[0].ID() && r.SessionID != sessions[1].ID() {
			watching <- struct{}{}
		}
		return zkserver.Fault{}
	})
	third, fourth := enter(sessions[2]), enter(sessions[3])
	for range 2 {
		select {
		case <-watching:
		case <-ctx.Done():
			t.Fatal("the waiting members do not watch the last member inside")
		}
	}
	srv.ExpireSession(sessions[1].ID())
	a, b := <-third, <-fourth
	must.Do(t, errors.Join(a.Err, b.Err))
	left := zktest.GoDo(ctx, a.Got.Leave)
	must.Report(t, errors.Join(b.Got.Leave(ctx), <-left))
}

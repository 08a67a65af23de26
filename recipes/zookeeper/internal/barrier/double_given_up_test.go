package barrier_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A member gives up, and is counted before its znode is deleted. It counts like a member that
// fails after it has entered: the members that enter with it can leave, and later ones can
// enter.
func TestAMemberThatGaveUpHoldsUpNoOther(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	quitter, partner, third := zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)
	quitting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	leaves := make(chan struct{})
	var once sync.Once
	var lists atomic.Int32
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID == quitter.ID() && r.Op == zkserver.OpGetChildren2 && r.Path == "/b":
			if lists.Add(1) == 2 { // the first listing is before its znode exists
				giveUp() // its znode exists, and it has to wait
			}
		case r.SessionID == quitter.ID() && r.Op == zkserver.OpDelete:
			return zkserver.Fault{Hold: leaves}
		case r.SessionID == partner.ID() && r.Op == zkserver.OpDelete:
			once.Do(func() { close(leaves) })
		}
		return zkserver.Fault{}
	})
	if p, err := doubleBarrierAt(t, quitter, "/b", 2).Enter(quitting, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("the member that gives up: %v, %v", p, err)
	}
	p := must.Get(doubleBarrierAt(t, partner, "/b", 2).Enter(ctx, nil))(t)
	if members := p.Members(); len(members) != 2 || members[1] != p.Znode() {
		t.Fatalf("%s has entered with %v; want the member that has given up, and itself", p.Znode(), members)
	}
	next := make(chan recipes.Passage, 1)
	go func() {
		p, err := doubleBarrierAt(t, third, "/b", 2).Enter(ctx, nil)
		if err != nil {
			t.Error(err)
		}
		next <- p
	}()
	must.Do(t, p.Leave(ctx))
	again := must.Get(doubleBarrierAt(t, partner, "/b", 2).Enter(ctx, nil))(t)
	q := <-next
	if q == nil {
		t.FailNow()
	}
	want := []string{again.Znode(), q.Znode()}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(again.Members())); !slices.Equal(got, want) {
		t.Errorf("entered with %v; want %v", got, want)
	}
	left := make(chan error, 1)
	go func() { left <- again.Leave(ctx) }()
	must.Report(t, errors.Join(q.Leave(ctx), <-left))
}

// One member inside gives up leaving, and the other one dies. So the members that wait have to
// watch the last member inside themselves.
func TestTheNextEnterWhenTheLastInsideDies(t *testing.T) {
	srv := zktest.Embedded(t)
	ctx := zktest.Bounded(t)
	sessions := []recipes.Client{zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv), zktest.Open(t, srv)}
	enter := func(s recipes.Client) chan recipes.Passage {
		entered := make(chan recipes.Passage, 1)
		go func() {
			p, err := doubleBarrierAt(t, s, "/b", 2).Enter(ctx, nil)
			if err != nil {
				t.Error(err)
			}
			entered <- p
		}()
		return entered
	}
	first, second := enter(sessions[0]), enter(sessions[1])
	quits, dies := <-first, <-second
	if quits == nil || dies == nil {
		t.FailNow()
	}
	gone, giveUp := context.WithCancel(ctx)
	giveUp()
	if err := quits.Leave(gone); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	watching := make(chan struct{}, 100)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpGetData && r.Path == dies.Znode() && r.SessionID != sessions[0].ID() && r.SessionID != sessions[1].ID() {
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
	if a == nil || b == nil {
		t.FailNow()
	}
	left := make(chan error, 1)
	go func() { left <- a.Leave(ctx) }()
	must.Report(t, errors.Join(b.Leave(ctx), <-left))
}

package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Who is counted before its node is gone counts as one that has failed after
// entering: whoever enters with it can leave, and those who come then enter.
func TestAMemberThatGaveUpHoldsNobody(t *testing.T) {
	srv := embedded(t)
	ctx := bounded(t)
	quitter, partner, third := open(t, srv), open(t, srv), open(t, srv)
	quitting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	leaves := make(chan struct{})
	var once sync.Once
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		switch {
		case r.SessionID == quitter.ID() && r.Op == zkserver.OpGetChildren2 && r.Path == "/b":
			giveUp() // it stands, and has found that it has to wait
		case r.SessionID == quitter.ID() && r.Op == zkserver.OpDelete:
			return zkserver.Fault{Hold: leaves}
		case r.SessionID == partner.ID() && r.Op == zkserver.OpDelete:
			once.Do(func() { close(leaves) })
		}
		return zkserver.Fault{}
	})
	if p, err := doubleBarrierAt(t, quitter, "/b", 2).Enter(quitting, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("who gives up: %v, %v", p, err)
	}
	p := must[recipes.Passage](t)(doubleBarrierAt(t, partner, "/b", 2).Enter(ctx, nil))
	if members := p.Members(); len(members) != 2 || members[1] != p.Znode() {
		t.Fatalf("%s has entered with %v; want the one that has given up, and itself", p.Znode(), members)
	}
	next := make(chan recipes.Passage, 1)
	go func() {
		p, err := doubleBarrierAt(t, third, "/b", 2).Enter(ctx, nil)
		if err != nil {
			t.Error(err)
		}
		next <- p
	}()
	if err := p.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	again := must[recipes.Passage](t)(doubleBarrierAt(t, partner, "/b", 2).Enter(ctx, nil))
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
	if err := errors.Join(q.Leave(ctx), <-left); err != nil {
		t.Error(err)
	}
}

// endsLate is a context during which something ends at the worst moment: after a
// transaction has come back without an outcome, and before the recipe asks whether
// it may look again.
type endsLate struct {
	context.Context
	looks atomic.Int32 // at Err since the transaction was sent; far below 0 before
	end   func()
}

const beforeTransaction = -1 << 20

func (c *endsLate) Err() error {
	// The first look is the session's, when the transaction comes back.
	if c.looks.Add(1) == 2 {
		c.end()
	}
	return c.Context.Err()
}

// An outcome that is not known is no business of who enters or leaves: the error
// says what has ended it.
func TestATransactionWithoutOutcomeIsToldAsWhatEndedIt(t *testing.T) {
	for _, test := range []struct {
		name    string
		expires bool // the session; or else the call is cancelled
		enter   bool // or else leave
		want    []error
	}{
		{"enter, expired", true, true, []error{recipes.ErrSessionLost}},
		{"enter, cancelled", false, true, []error{context.Canceled}},
		{"leave, expired", true, false, []error{recipes.ErrNotHeld, recipes.ErrSessionLost}},
		{"leave, cancelled", false, false, []error{context.Canceled}},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := embedded(t)
			s := open(t, srv)
			inner, cancel := context.WithCancel(bounded(t))
			defer cancel()
			ctx := &endsLate{Context: inner}
			ctx.looks.Store(beforeTransaction)
			ctx.end = func() {
				srv.RefuseConnections(false)
				if test.expires {
					<-s.Lost() // which the next connection tells
				} else {
					cancel()
				}
			}
			b := doubleBarrierAt(t, s, "/b", 1)
			var p recipes.Passage
			if !test.enter {
				p = must[recipes.Passage](t)(b.Enter(inner, nil))
			}
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.Op != zkserver.OpMulti || !strings.Contains(r.Path, "-member-") {
					return zkserver.Fault{}
				}
				srv.SetFault(nil)
				ctx.looks.Store(0)
				srv.RefuseConnections(true)
				return zkserver.Fault{CloseBefore: !test.expires, ExpireBefore: test.expires}
			})
			var err error
			if test.enter {
				_, err = b.Enter(ctx, nil)
			} else {
				err = p.Leave(ctx)
			}
			for _, want := range test.want {
				if !errors.Is(err, want) {
					t.Errorf("the error is %v; want %v", err, want)
				}
			}
			if errors.Is(err, recipes.ErrUnknownOutcome) {
				t.Errorf("the error is %v, of which nothing is unknown to the caller", err)
			}
			if n := ctx.looks.Load(); n < 2 {
				t.Errorf("the context was looked at %d times: nothing has ended", n)
			}
		})
	}
}

package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestFaultSweepDoubleBarrier(t *testing.T) {
	all := doubleBarrierSweeps(recipes.ZooKeeper)
	all = append(all, doubleBarrierSweeps(recipes.Kazoo)[0], doubleBarrierSweeps(recipes.Curator)[1])
	runSweeps(t, "double-barrier", all)
}

func doubleBarrierSweeps(d recipes.Dialect) []sweep {
	at := func(st *stage, s recipes.Session) recipes.DoubleBarrier {
		return must[recipes.DoubleBarrier](st.t)(s.DoubleBarrier(sweepPath, recipes.DoubleBarrierConfig{Size: 2, Dialect: d}))
	}
	enter := func(st *stage, s recipes.Session, ctx context.Context) <-chan recipes.Passage {
		in := make(chan recipes.Passage, 1)
		b := at(st, s)
		go func() {
			defer close(in)
			if p, err := b.Enter(ctx, nil); err == nil {
				in <- p
			}
		}()
		return in
	}
	// quiet waits until the server has had nothing to do for a moment, so that
	// the cases are the same in each run. Nothing else depends on it.
	quiet := func(st *stage) {
		for last, calm := st.srv.Counters(), 0; calm < 5 && st.ctx.Err() == nil; calm++ {
			time.Sleep(time.Millisecond)
			now := st.srv.Counters()
			if now.Reads != last.Reads || now.Writes != last.Writes {
				calm = 0
			}
			last = now
		}
	}
	act := func(first bool) func(context.Context, *stage) error {
		return func(ctx context.Context, st *stage) error {
			otherCtx, giveUp := context.WithCancel(st.ctx)
			defer giveUp()
			var others <-chan recipes.Passage
			if !first {
				others = enter(st, st.other, otherCtx)
				quiet(st)
			}
			mine := make(chan error, 1)
			var p recipes.Passage
			go func() {
				var err error
				p, err = at(st, st.victim).Enter(ctx, nil)
				mine <- err
			}()
			if first {
				quiet(st)
				others = enter(st, st.other, otherCtx)
			}
			if err := <-mine; err != nil {
				// The other may have entered with the victim, or waits on.
				giveUp()
				if other := <-others; other != nil {
					return errors.Join(err, other.Leave(st.ctx))
				}
				return err
			}
			var other recipes.Passage
			select {
			case other = <-others:
			case <-p.Done():
				if d != recipes.DefaultDialect {
					giveUp() // ready may have gone with the victim's session before the other has looked
				}
				if other = <-others; other == nil && d != recipes.DefaultDialect {
					return p.Err()
				}
			}
			if other == nil || len(p.Members()) != 2 {
				st.t.Errorf("entered with %v; the other: %v", p.Members(), other)
				return nil
			}
			quiet(st)
			left := make(chan error, 1)
			leaveOther := func() { left <- other.Leave(st.ctx) }
			if !first {
				go leaveOther()
				quiet(st)
			}
			go func() { mine <- p.Leave(ctx) }()
			if first {
				quiet(st)
				go leaveOther()
			}
			err := <-mine
			if otherErr := <-left; otherErr != nil {
				st.t.Errorf("the other cannot leave: %v", otherErr)
			}
			return err
		}
	}
	check := func(st *stage, _ error) {
		st.awaitGone()
		pair := twoEnter(st, func(s recipes.Session) <-chan recipes.Passage { return enter(st, s, st.ctx) })
		left := make(chan error, 1)
		go func() { left <- pair[0].Leave(st.ctx) }()
		if err := errors.Join(pair[1].Leave(st.ctx), <-left); err != nil {
			st.t.Error(err)
		}
	}
	return []sweep{
		{name: "the first to come and to leave, " + string(d), act: act(true), check: check},
		{name: "the last to come and to leave, " + string(d), act: act(false), check: check},
	}
}

// twoEnter has members of two new sessions enter together.
//
// What was given up before is deleted in the background, and may be counted until
// then, as DoubleBarrier.Enter documents. Then one of the two enters with that, and
// the other waits for the next generation. So the one leaves and comes again.
func twoEnter(st *stage, enter func(recipes.Session) <-chan recipes.Passage) [2]recipes.Passage {
	st.t.Helper()
	sessions := [2]recipes.Session{open(st.t, st.srv), open(st.t, st.srv)}
	in := [2]<-chan recipes.Passage{enter(sessions[0]), enter(sessions[1])}
	for {
		var p recipes.Passage
		first := 0
		select {
		case p = <-in[0]:
		case p = <-in[1]:
			first = 1
		}
		if p == nil {
			st.t.Fatal("after the fault nobody enters")
		}
		second := 1 - first
		if st.owns(sessions[second].ID(), p.Members()) {
			q := <-in[second]
			if q == nil || !slices.Equal(q.Members(), p.Members()) {
				st.t.Fatalf("one has entered with %v, the other: %v", p.Members(), q)
			}
			return [2]recipes.Passage{p, q}
		}
		if err := p.Leave(st.ctx); err != nil {
			st.t.Fatalf("after entering with what was given up: %v", err)
		}
		in[first] = enter(sessions[first])
	}
}

// owns reports whether one of the znodes stands and is the session's.
func (st *stage) owns(session int64, znodes []string) bool {
	return slices.ContainsFunc(st.srv.Tree(), func(n zkserver.Node) bool {
		return n.Stat.EphemeralOwner == session && slices.Contains(znodes, n.Path)
	})
}

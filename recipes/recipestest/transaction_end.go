package recipestest

import (
	"errors"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func noTransaction(f *fixture) {
	tx := f.transaction(f.open(), "")
	f.is(errOf(tx.Join(f.ctx, "1")), recipes.ErrNoTransaction)
	f.is(errOf(tx.Coordinate(f.ctx)), recipes.ErrNoTransaction)
	f.is(errOf(tx.Abort(f.ctx, "")), recipes.ErrNoTransaction)
	f.is(errOf(tx.Status(f.ctx)), recipes.ErrNoTransaction)
	f.must(tx.Forget(f.ctx))
}

func decisionTests() []variantTest {
	return []variantTest{
		{"a decision does not change", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			p.vote(commits, commits)
			f.decision(get(f, p.tx.Coordinate), true, "")
			d := must.Get(p.tx.Abort(f.ctx, "too late"))(f)
			f.decision(d, true, "")
			f.is(p.sites[0].Vote(f.ctx, aborts), recipes.ErrVoted)
			for _, s := range p.sites {
				f.decision(get(f, s.Wait), true, "")
			}
		}},
		{"a second vote that differs is ErrVoted", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			for range 2 {
				p.vote(commits)
			}
			f.is(p.sites[0].Vote(f.ctx, aborts), recipes.ErrVoted)
			p.vote(silent, aborts)
			f.is(p.sites[1].Vote(f.ctx, commits), recipes.ErrVoted)
			f.is(p.sites[1].Vote(f.ctx, "perhaps"), recipes.ErrInvalid)
			f.is(p.sites[1].Vote(f.ctx, ""), recipes.ErrInvalid)
		}},
		{"Abort decides while votes are missing", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			calls := p.wait()
			p.vote(commits)
			d := must.Get(p.tx.Abort(f.ctx, "took too long"))(f)
			f.decision(d, false, "took too long")
			p.decided(calls, false, "took too long")
		}},
		// The reason is not UTF-8, as in an error that quotes data. All sites must still learn the
		// decision.
		{"a reason that is not UTF-8 can be read", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 2)
			d := must.Get(p.tx.Abort(f.ctx, "bad record \xff"))(f)
			f.decision(d, false, "bad record \uFFFD")
			p.decided(p.wait(), false, "bad record \uFFFD")
			status := get(f, p.tx.Status)
			f.decision(*status.Decision, false, "bad record \uFFFD")
		}},
		{"the transaction is deleted when the last site calls Done", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 3)
			p.vote(commits, commits)
			f.is(p.sites[0].Done(f.ctx), recipes.ErrUndecided)
			f.is(p.tx.Forget(f.ctx), recipes.ErrUndecided)
			p.vote(silent, silent, commits)
			get(f, p.tx.Coordinate)
			for range 2 {
				f.must(p.sites[0].Done(f.ctx))
				f.must(p.sites[1].Done(f.ctx))
			}
			err := p.tx.Forget(f.ctx)
			f.is(err, recipes.ErrUndecided)
			f.failIf(err != nil && !strings.Contains(err.Error(), `"3"`), "%v does not name the missing site", err)
			f.decision(get(f, p.sites[2].Wait), true, "")
			f.must(p.sites[2].Done(f.ctx))
			f.failIf(f.exists(f.path("app", "Tx")), "the transaction still exists")
			f.must(p.sites[0].Done(f.ctx))
			f.must(p.tx.Forget(f.ctx))
			f.is(errOf(p.tx.Status(f.ctx)), recipes.ErrNoTransaction)
		}},
		{"a path can be used again; for the sites of the old transaction it is ErrNoTransaction", func(f *fixture, v recipes.Variant) {
			late := f.party(v, 2)
			late.vote(silent, aborts)
			get(f, late.tx.Coordinate)
			for _, name := range names(2) { // other sessions finish for them, as an operator can
				again, err := f.transaction(f.open(), "").Join(f.ctx, name)
				if errors.Is(err, recipes.ErrNotHeld) {
					f.Fatal(err)
				}
				f.must(err)
				f.must(again.Done(f.ctx))
			}
			next := f.party(v, 2)
			f.is(late.sites[0].Vote(f.ctx, aborts), recipes.ErrNoTransaction)
			f.must(late.sites[0].Done(f.ctx))
			next.vote(commits, commits)
			f.decision(get(f, next.tx.Coordinate), true, "")
			f.is(errOf(late.sites[0].Wait(f.ctx)), recipes.ErrNoTransaction)
			f.is(next.tx.Forget(f.ctx), recipes.ErrUndecided)
		}},
		{"of many concurrent decisions, one counts for all", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 4)
			calls := p.wait()
			var aborting []*awaited
			for _, s := range p.sessions {
				tx := f.transaction(s, "")
				aborting = append(aborting, start(f, func() (recipes.Decision, error) { return tx.Abort(f.ctx, "race") }))
			}
			for _, s := range p.sites {
				f.must(s.Vote(f.ctx, commits))
			}
			want := aborting[0].must(f)
			for _, c := range append(calls, aborting...) {
				got := c.must(f)
				f.failIf(got != want, "decided %+v and %+v", got, want)
			}
		}},
		{"a Begin whose reply is lost begins one transaction", func(f *fixture, v recipes.Variant) {
			s := f.open()
			get(f, f.lock(s, f.path("app")).Contenders)
			f.create(f.path("app"), "")
			f.relay(s).HoldReplies()
			tx := f.transaction(s, v)
			call := startErr(f, func() error { return tx.Begin(f.ctx, nil, "1") })
			f.awaitNode(f.path("app", "Tx"), true)
			_, first := f.read(f.path("app", "Tx"))
			f.lose(s)
			call.must(f)
			_, stat := f.read(f.path("app", "Tx"))
			f.failIf(stat.Czxid != first.Czxid, "the transaction was created twice")
			f.awaitChildren(f.path("app"), 1) // the receipt is deleted
			f.is(tx.Begin(f.ctx, nil, "1"), recipes.ErrNodeExists)
			f.awaitChildren(f.path("app"), 1)
		}},
		{"a vote whose reply is lost succeeds", func(f *fixture, v recipes.Variant) {
			p := f.party(v, 1)
			f.relay(p.sessions[0]).HoldReplies()
			call := startErr(f, func() error { return p.sites[0].Vote(f.ctx, commits) })
			f.decision(get(f, p.tx.Coordinate), true, "")
			f.lose(p.sessions[0])
			call.must(f)
		}},
	}
}

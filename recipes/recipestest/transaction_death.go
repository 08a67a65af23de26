package recipestest

import (
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func joinsAgain(f *fixture, v recipes.Variant) {
	p := f.party(v, 2)
	p.vote(commits, commits)
	get(f, p.tx.Coordinate)
	f.must(p.sessions[1].Close(f.ctx))
	again := must.Get(f.transaction(f.open(), "").Join(f.ctx, "2"))(f)
	f.decision(get(f, again.Wait), true, "")
	f.must(again.Done(f.ctx))
	f.must(p.sites[0].Done(f.ctx))
	f.awaitNode(f.path("app", "Tx"), false)
}

func coordinatorDies(f *fixture, v recipes.Variant) {
	p := f.party(v, 3)
	calls := p.wait()[1:]
	p.vote(commits)
	f.must(p.coordinator.Close(f.ctx))
	p.vote(silent, commits, commits)
	p.decided(calls, true, "")

	f2 := *f
	f2.root += "-2"
	p = f2.party(v, 2)
	p.vote(commits, commits)
	f.must(p.coordinator.Close(f.ctx)) // before it has counted votes, and before a site waits
	for _, s := range p.sites {
		f.decision(get(f, s.Wait), true, "")
	}
}

func siteDeathTests() []test {
	return []test{
		{"own-nodes/the end of a site's session before its vote aborts the transaction", func(f *fixture) {
			p := f.party(recipes.OwnNodes, 3)
			calls := p.wait()
			p.vote(commits)
			f.expire(p.sessions[1])
			p.decided([]*awaited{calls[0], calls[1], calls[3]}, false, "2 has died")
		}},
		{"own-nodes/the end of a site's session after its vote, before the decision, aborts the transaction", func(f *fixture) {
			p := f.party(recipes.OwnNodes, 2)
			p.vote(commits)
			f.must(p.sessions[0].Close(f.ctx))
			p.vote(silent, commits)
			f.decision(get(f, p.tx.Coordinate), false, "1 has died")
		}},
		// One site votes before the coordinator's first read, another while
		// the coordinator watches.
		{"own-nodes/the end of a site's session after its vote aborts at once, while votes are missing", func(f *fixture) {
			for dying, reason := range []string{"1 has died", "2 has died"} {
				each := *f
				each.root += "-" + names(2)[dying]
				p := each.party(recipes.OwnNodes, 3)
				p.vote(commits)
				calls := p.wait()
				reads := func(c recipes.Stats) int64 { return c.ByKind["getData"] }
				var before int64
				f.reach(p.coordinator, func(c recipes.Stats) bool { before = reads(c); return before > 3 })
				p.vote(silent, commits)
				f.reach(p.coordinator, func(c recipes.Stats) bool { return reads(c) > before })
				f.must(p.sessions[dying].Close(f.ctx))
				p.decided([]*awaited{calls[0], calls[3]}, false, reason)
			}
		}},
		{"own-nodes/the end of a site's session before all have joined aborts the transaction", func(f *fixture) {
			s := f.open()
			tx := f.transaction(s, recipes.OwnNodes)
			f.must(tx.Begin(f.ctx, nil, "1", "2", "3"))
			call := start(f, func() (recipes.Decision, error) { return tx.Coordinate(f.ctx) })
			f.reach(s, func(c recipes.Stats) bool { return listings(c) > 0 })
			dying := f.open()
			must.Get(f.transaction(dying, "").Join(f.ctx, "2"))(f)
			call.blocked(f)
			f.must(dying.Close(f.ctx))
			f.decision(call.must(f), false, "2 has died")
		}},
		{"own-nodes/the end of a site's session after the decision changes nothing", func(f *fixture) {
			p := f.party(recipes.OwnNodes, 2)
			p.vote(commits, commits)
			f.decision(get(f, p.tx.Coordinate), true, "")
			for _, s := range p.sessions {
				f.must(s.Close(f.ctx))
			}
			f.decision(get(f, p.tx.Coordinate), true, "")
		}},
		{"own-nodes/a dead site can neither vote nor join again", func(f *fixture) {
			p := f.party(recipes.OwnNodes, 2)
			f.remove(f.path("app", "Tx", "s_1"))
			f.is(p.sites[0].Vote(f.ctx, commits), recipes.ErrNotHeld)
			f.is(errOf(f.transaction(f.open(), "").Join(f.ctx, "1")), recipes.ErrNotHeld)
			f.is(errOf(f.transaction(f.open(), "").Join(f.ctx, "2")), recipes.ErrNotHeld) // site 2 is alive, in another session
			must.Get(f.transaction(p.sessions[1], "").Join(f.ctx, "2"))(f)
			status := get(f, p.tx.Status)
			f.failIf(!status.Sites[0].Dead || !status.Sites[0].Joined || status.Sites[1].Dead, "sites %+v", status.Sites)
		}},
		{"own-nodes/the coordinator waits for a site that joins late", func(f *fixture) {
			s := f.open()
			tx := f.transaction(s, recipes.OwnNodes)
			f.must(tx.Begin(f.ctx, nil, "1", "2"))
			call := start(f, func() (recipes.Decision, error) { return tx.Coordinate(f.ctx) })
			for _, name := range []string{"2", "1"} {
				f.reach(s, func(c recipes.Stats) bool { return listings(c) > 0 })
				call.blocked(f)
				site := must.Get(f.transaction(f.open(), "").Join(f.ctx, name))(f)
				f.must(site.Vote(f.ctx, commits))
			}
			f.decision(call.must(f), true, "")
		}},
	}
}

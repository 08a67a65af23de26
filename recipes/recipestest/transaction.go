package recipestest

import (
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// variantTest is a test that runs with each variant.
type variantTest struct {
	name string
	run  func(*fixture, recipes.Variant)
}

func transactionTests() []test {
	var all []test
	for _, v := range recipes.Variants() {
		for _, t := range slices.Concat(decisionTests(), transactionWaitTests(), []variantTest{
			{"if all sites vote to commit, all learn that the transaction commits", func(f *fixture, v recipes.Variant) {
				p := f.party(v, 3)
				for i, s := range p.sites {
					if s.Name() != names(3)[i] || string(s.Payload()) != "payload" {
						f.Errorf("site %q with payload %q", s.Name(), s.Payload())
					}
				}
				calls := p.wait()
				p.vote(commits, commits)
				for _, c := range calls {
					c.blocked(f)
				}
				p.vote(silent, silent, commits)
				p.decided(calls, true, "")
			}},
			{"one vote to abort decides, without the other votes", func(f *fixture, v recipes.Variant) {
				p := f.party(v, 3)
				calls := p.wait()
				p.vote(silent, aborts)
				p.decided(calls, false, "2")
				p.vote(commits) // a vote after the decision succeeds
				d := get(f, p.sites[2].Wait)
				f.decision(d, false, "2")
			}},
			{"the znodes are those of the source text", func(f *fixture, v recipes.Variant) {
				p := f.party(v, 2)
				path := f.path("app", "Tx")
				data, stat := f.read(path)
				f.failIf(data != "payload" || stat.EphemeralOwner != 0, "%s has data %q", path, data)
				for i, s := range p.sessions {
					data, stat := f.read(path + "/s_" + names(2)[i])
					owner := int64(0)
					if v == recipes.OwnNodes {
						owner = s.ID()
					}
					if data != "" || stat.EphemeralOwner != owner {
						f.Errorf("s_%d has data %q and owner %#x", i+1, data, stat.EphemeralOwner)
					}
				}
				p.vote(commits, aborts)
				for i, want := range []string{"commit", "abort"} {
					data, _ := f.read(path + "/s_" + names(2)[i])
					f.failIf(data != want, "s_%d has data %q; want %q", i+1, data, want)
				}
				get(f, p.tx.Coordinate)
				if data, stat := f.read(path + "/decision"); !strings.HasPrefix(data, "abort site 2 voted so\n") || stat.EphemeralOwner != 0 {
					f.Errorf("the decision has data %q and owner %#x", data, stat.EphemeralOwner)
				}
			}},
			{"a site that is not in the transaction is ErrUnknownSite", func(f *fixture, v recipes.Variant) {
				p := f.party(v, 2)
				for _, name := range []string{"3", "", "s_1"} {
					site, err := p.tx.Join(f.ctx, name)
					f.is(err, recipes.ErrUnknownSite)
					f.failIf(site != nil, "site %q joined", name)
				}
				f.is(p.tx.Begin(f.ctx, nil, "4"), recipes.ErrNodeExists)
			}},
			{"a site that joins again learns the decision", joinsAgain},
			{"without a coordinator, a waiting site decides", coordinatorDies},
			{"Status returns sites, votes and the decision", func(f *fixture, v recipes.Variant) {
				p := f.party(v, 2)
				p.vote(silent, aborts)
				got := get(f, p.tx.Status)
				if got.Variant != v || string(got.Payload) != "payload" || len(got.Sites) != 2 || got.Decision != nil ||
					got.Coordinated != (v != recipes.AllWatch) {
					f.Fatalf("status %+v", got)
				}
				if got.Sites[0].Name != "1" || got.Sites[0].Vote != silent || got.Sites[1].Vote != aborts {
					f.Errorf("sites %+v", got.Sites)
				}
				get(f, p.tx.Coordinate)
				f.must(p.sites[0].Done(f.ctx))
				got = get(f, p.tx.Status)
				if got.Decision == nil || got.Decision.Commit || !got.Sites[0].Done || got.Sites[1].Done {
					f.Errorf("status %+v", got)
				}
			}},
		}) {
			all = append(all, test{string(v) + "/" + t.name, func(f *fixture) { t.run(f, v) }})
		}
		all = append(all, transactionContextTests(v)...)
	}
	return append(all,
		test{"a bad argument is ErrInvalid", func(f *fixture) {
			s := f.open()
			for _, bad := range []struct {
				path    string
				variant recipes.Variant
			}{{"relative", ""}, {"", ""}, {"/", ""}, {"/a", "by-hope"}} {
				t, err := s.Transaction(bad.path, recipes.TransactionConfig{Variant: bad.variant})
				f.is(err, recipes.ErrInvalid)
				f.failIf(t != nil, "%+v gave a transaction", bad)
			}
			tx := f.transaction(s, "")
			for _, sites := range [][]string{nil, {""}, {"a/b"}, {"a", "a"}, {"a\x00"}} {
				f.is(tx.Begin(f.ctx, nil, sites...), recipes.ErrInvalid)
			}
			f.failIf(f.exists(f.path("app")), "something was created")
			f.is(tx.Begin(f.ctx, make([]byte, 1<<20), "1"), recipes.ErrTooLarge)
		}},
		test{"a call without a transaction is ErrNoTransaction", noTransaction},
	)
}

const (
	commits = recipes.VoteCommit
	aborts  = recipes.VoteAbort
	silent  = ""
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

package recipestest

import (
	"slices"
	"strings"

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
			f.is(tx.Begin(f.ctx, make([]byte, recipes.DefaultMaxPacket), "1"), recipes.ErrTooLarge)
		}},
		test{"a call without a transaction is ErrNoTransaction", noTransaction},
	)
}

const (
	commits = recipes.VoteCommit
	aborts  = recipes.VoteAbort
	silent  = recipes.NotVoted
)

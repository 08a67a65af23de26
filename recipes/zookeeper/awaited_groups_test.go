package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func awaitedGroups() (all []awaited) {
	all = []awaited{
		{"a member of a group", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{}))
			theirs := must[recipes.Group](s.T)(s.other.Group("/g", recipes.GroupConfig{}))
			return until(mine.Watch, func(m []recipes.Member) bool { return len(m) == 1 }),
				func(ctx context.Context) error { _, err := theirs.Join(ctx, nil); return err }
		}},
		{"a member's data", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine := must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{}))
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(s.other.Group("/g", recipes.GroupConfig{})).Join(s.ctx, nil))
			return until(mine.Watch, func(m []recipes.Member) bool { return len(m) == 1 && string(m[0].Data) == "x" }),
				func(ctx context.Context) error { return m.Update(ctx, []byte("x")) }
		}},
		{"the end of a membership", func(s *awaiting) (wait, happen func(context.Context) error) {
			m := must[recipes.Membership](s.T)(must[recipes.Group](s.T)(s.waits.Group("/g", recipes.GroupConfig{})).Join(s.ctx, nil))
			return ended(m), func(context.Context) error { return s.remove(m.Znode()) }
		}},
		{"a name", func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := must[recipes.Names](s.T)(s.waits.Names("/n")), must[recipes.Names](s.T)(s.other.Names("/n"))
			return until(func(ctx context.Context) (<-chan recipes.Record, error) { return mine.Watch(ctx, "name") },
					func(r recipes.Record) bool { return r.Znode != "" }),
				func(ctx context.Context) error { _, err := theirs.Register(ctx, "name", nil); return err }
		}},
	}
	for _, acknowledgedBefore := range []bool{false, true} {
		campaigning := func(s *awaiting) (mine, theirs recipes.Election) {
			mine = must[recipes.Election](s.T)(s.waits.Election("/e", recipes.ElectionConfig{}))
			theirs = must[recipes.Election](s.T)(s.other.Election("/e", recipes.ElectionConfig{}))
			if acknowledgedBefore { // so that the parents of candidates and acknowledgements exist
				leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
				if err := errors.Join(leads.Acknowledge(s.ctx, nil), leads.Resign(s.ctx)); err != nil {
					s.Fatal(err)
				}
			}
			return mine, theirs
		}
		acknowledged := func(e recipes.Election) func(context.Context) error {
			return func(ctx context.Context) error { _, err := e.Acknowledged(ctx); return err }
		}
		all = append(all, awaited{fmt.Sprintf("a leader, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			return until(mine.Observe, func(l recipes.Leader) bool { return !l.None() }),
				func(ctx context.Context) error { _, err := theirs.Campaign(ctx, nil); return err }
		}}, awaited{fmt.Sprintf("a leader that acknowledges, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			return acknowledged(mine), func(ctx context.Context) error {
				leads, err := theirs.Campaign(ctx, nil)
				if err != nil {
					return err
				}
				return leads.Acknowledge(ctx, nil)
			}
		}}, awaited{fmt.Sprintf("an acknowledgement, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			return acknowledged(mine), func(ctx context.Context) error { return leads.Acknowledge(ctx, nil) }
		}}, awaited{fmt.Sprintf("another acknowledgement, the first %v", !acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			if err := leads.Acknowledge(s.ctx, nil); err != nil {
				s.Fatal(err)
			}
			return until(mine.Observe, func(l recipes.Leader) bool { return string(l.Acknowledgement) == "x" }),
				func(ctx context.Context) error { return leads.Acknowledge(ctx, []byte("x")) }
		}}, awaited{fmt.Sprintf("the resignation of a leader, acknowledged %v", acknowledgedBefore), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := campaigning(s)
			leads := must[recipes.Leadership](s.T)(theirs.Campaign(s.ctx, nil))
			return until(mine.Observe, recipes.Leader.None), leads.Resign
		}})
	}
	for _, variant := range recipes.Variants() {
		sites := func(s *awaiting) (tx recipes.Transaction, mine, theirs recipes.Site) {
			tx = must[recipes.Transaction](s.T)(s.waits.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			begins := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			if err := begins.Begin(s.ctx, nil, "mine", "theirs"); err != nil {
				s.Fatal(err)
			}
			return tx, must[recipes.Site](s.T)(tx.Join(s.ctx, "mine")), must[recipes.Site](s.T)(begins.Join(s.ctx, "theirs"))
		}
		decided := func(wait func(context.Context) (recipes.Decision, error), commit bool) func(context.Context) error {
			return func(ctx context.Context) error {
				d, err := wait(ctx)
				if err == nil && d.Commit != commit {
					err = fmt.Errorf("decided %+v", d)
				}
				return err
			}
		}
		all = append(all, awaited{fmt.Sprintf("the last vote, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			tx, mine, theirs := sites(s)
			if err := mine.Vote(s.ctx, recipes.VoteCommit); err != nil {
				s.Fatal(err)
			}
			return decided(tx.Coordinate, true), func(ctx context.Context) error { return theirs.Vote(ctx, recipes.VoteCommit) }
		}}, awaited{fmt.Sprintf("a vote to abort, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			tx, _, theirs := sites(s)
			return decided(tx.Coordinate, false), func(ctx context.Context) error { return theirs.Vote(ctx, recipes.VoteAbort) }
		}}, awaited{fmt.Sprintf("a decision, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
			_, mine, _ := sites(s)
			aborts := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
			return decided(mine.Wait, false), func(ctx context.Context) error { _, err := aborts.Abort(ctx, ""); return err }
		}})
		if variant != recipes.AllWatch {
			all = append(all, awaited{fmt.Sprintf("the coordinator's place, %s", variant), func(s *awaiting) (wait, happen func(context.Context) error) {
				_, mine, theirs := sites(s)
				for _, site := range []recipes.Site{mine, theirs} {
					if err := site.Vote(s.ctx, recipes.VoteCommit); err != nil {
						s.Fatal(err)
					}
				}
				return decided(mine.Wait, true), func(context.Context) error { return s.remove("/tx/coordinator") }
			}})
		}
		if variant == recipes.OwnNodes {
			all = append(all, awaited{"a site that joins, and dies", func(s *awaiting) (wait, happen func(context.Context) error) {
				begins := must[recipes.Transaction](s.T)(s.other.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
				if err := begins.Begin(s.ctx, nil, "theirs"); err != nil {
					s.Fatal(err)
				}
				mine := must[recipes.Transaction](s.T)(s.waits.Transaction("/tx", recipes.TransactionConfig{Variant: variant}))
				return decided(mine.Coordinate, false), func(ctx context.Context) error {
					if _, err := begins.Join(ctx, "theirs"); err != nil {
						return err
					}
					return s.remove("/tx/s_theirs")
				}
			}})
		}
	}
	for _, d := range []recipes.Dialect{recipes.ZooKeeper, recipes.Curator, recipes.Kazoo} {
		at := func(s *awaiting) (mine, theirs recipes.DoubleBarrier) {
			cfg := recipes.DoubleBarrierConfig{Size: 2, Dialect: d}
			return must[recipes.DoubleBarrier](s.T)(s.waits.DoubleBarrier("/b", cfg)), must[recipes.DoubleBarrier](s.T)(s.other.DoubleBarrier("/b", cfg))
		}
		all = append(all, awaited{fmt.Sprintf("another member of a double barrier, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := at(s)
			return func(ctx context.Context) error { _, err := mine.Enter(ctx, nil); return err }, func(context.Context) error {
				s.start(func(ctx context.Context) error { _, err := theirs.Enter(ctx, nil); return err })
				return nil
			}
		}}, awaited{fmt.Sprintf("another member that leaves, %s", d), func(s *awaiting) (wait, happen func(context.Context) error) {
			mine, theirs := at(s)
			entered := make(chan recipes.Passage, 1)
			s.start(func(ctx context.Context) error {
				p, err := theirs.Enter(ctx, nil)
				entered <- p
				return err
			})
			passage := must[recipes.Passage](s.T)(mine.Enter(s.ctx, nil))
			other := <-entered
			return passage.Leave, func(context.Context) error { s.start(other.Leave); return nil }
		}})
	}
	return all
}

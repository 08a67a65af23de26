package zookeeper_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func electionWays() []way {
	w := wayOf("election", way{
		shares: map[recipes.Dialect][]string{
			recipes.ZooKeeper: {"our election"},
			recipes.Curator:   {"LeaderLatch"},
			recipes.Kazoo:     {"kazoo's lock"},
		},
		uses: []use{{moved, options{}}},
	}, func(o *options) { o.Data = []byte("x") })
	for _, strategy := range recipes.Strategies() {
		w.uses = append(w.uses, use{operated | held, options{Strategy: strategy}})
	}
	return []way{w}
}

// electionOperations are the operations of leaders and observers. Campaign is among
// lineOperations.
func electionOperations() (all []operation) {
	leads := func(s *stage, in recipes.Client) recipes.Leadership {
		return must.Get(s.election(in).Campaign(s.ctx, []byte("1")))(s.T)
	}
	leader := func(l recipes.Leader) string {
		return fmt.Sprintln(l.None(), string(l.Data), l.Acknowledged, string(l.Acknowledgement))
	}
	const none, proposed, acknowledged, again = "true  false \n", "false 1 false \n", "false 1 true x\n", "false 1 true y\n"
	for _, d := range recipes.Dialects() {
		at := func(s *stage, in recipes.Client) recipes.Election {
			return must.Get(in.Election(stagePath, recipes.ElectionConfig{Dialect: d}))(s.T)
		}
		campaign := func(ctx context.Context, s *stage, _ int) error {
			leads, err := at(s, s.other).Campaign(ctx, []byte("x"))
			if err == nil && d == recipes.ZooKeeper { // the other libraries have no acknowledgements
				err = leads.Acknowledge(ctx, []byte("y"))
			}
			return err
		}
		ask := func(method string, of func(recipes.Election, context.Context) (recipes.Leader, error)) operation {
			return standing(method+", "+string(d), campaign, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
				return func(ctx context.Context) ([]recipes.Contender, error) {
					l, err := of(at(s, s.victim), ctx)
					l.Data = append(l.Data, leader(l)...)
					return []recipes.Contender{l.Contender}, err
				}
			})
		}
		all = append(all, standing("Election.Candidates, "+string(d), campaign, func(s *stage) func(context.Context) ([]recipes.Contender, error) {
			return at(s, s.victim).Candidates
		}), ask("Election.Leader", recipes.Election.Leader))
		if d == recipes.ZooKeeper {
			all = append(all, ask("Election.Acknowledged", recipes.Election.Acknowledged))
		}
	}
	for _, before := range []bool{false, true} {
		campaigning := func(s *stage) {
			if before { // so that the parents of candidates and acknowledgements exist
				l := leads(s, s.other)
				s.ok(errors.Join(l.Acknowledge(s.ctx, nil), l.Resign(s.ctx)))
			}
		}
		observes := func(s *stage, values ...string) func(context.Context) error {
			return until(s, s.election(s.victim).Observe, leader, values...)
		}
		named := fmt.Sprintf(", the first %v", !before)
		all = append(all, operation{"Election.Observe, a leader" + named, func(s *stage) doing {
			campaigning(s)
			return doing{act: observes(s, none, proposed), happen: func() error { leads(s, s.other); return nil }}
		}}, operation{"Election.Acknowledged, a leader that acknowledges" + named, func(s *stage) doing {
			campaigning(s)
			return doing{act: sole(s.election(s.victim).Acknowledged), happen: func() error { return leads(s, s.other).Acknowledge(s.ctx, nil) }}
		}}, operation{"Election.Acknowledged, an acknowledgement" + named, func(s *stage) doing {
			campaigning(s)
			l := leads(s, s.other)
			do := asking(s.election(s.victim).Acknowledged, leader)
			do.happen = func() error { return l.Acknowledge(s.ctx, []byte("x")) }
			do.after = func() error { return l.Resign(s.ctx) }
			return do
		}}, operation{"Election.Observe, the first acknowledgement" + named, func(s *stage) doing {
			campaigning(s)
			l := leads(s, s.other)
			return doing{act: observes(s, proposed, acknowledged), happen: func() error { return l.Acknowledge(s.ctx, []byte("x")) }}
		}}, operation{"Election.Observe, another acknowledgement" + named, func(s *stage) doing {
			campaigning(s)
			l := leads(s, s.other)
			s.ok(l.Acknowledge(s.ctx, []byte("x")))
			return doing{act: observes(s, acknowledged, again), happen: func() error { return l.Acknowledge(s.ctx, []byte("y")) }}
		}}, operation{"Election.Observe, a resignation" + named, func(s *stage) doing {
			campaigning(s)
			l := leads(s, s.other)
			return doing{act: observes(s, proposed, none), happen: func() error { return l.Resign(s.ctx) }}
		}})
	}
	return append(all, operation{"Election.Leader, one that resigns", func(s *stage) doing {
		l := leads(s, s.other)
		do := asking(s.election(s.victim).Leader, leader)
		do.between = []meddling{{name: "it resigns", at: zktest.Op(zkserver.OpGetData, stagePath+"/"), do: func() error { return l.Resign(s.ctx) }, want: recipes.ErrNoLeader}}
		return do
	}}, operation{"Leadership.Acknowledge", func(s *stage) doing {
		l := leads(s, s.victim)
		return doing{
			act:      func(ctx context.Context) error { return l.Acknowledge(ctx, []byte("x")) },
			happened: func() bool { return s.below(stagePath+"/acks/") > 0 },
			once:     true,
			lost:     []error{recipes.ErrNotHeld},
			single:   true,
			end:      func() error { return l.Resign(s.ctx) },
			denied:   []denial{{znode: stagePath + "/acks", perms: noCreate}},
		}
	}}, operation{"Leadership.Acknowledge, again", func(s *stage) doing {
		l := leads(s, s.victim)
		s.ok(l.Acknowledge(s.ctx, []byte("x")))
		shows := func() bool {
			l, err := s.election(s.other).Leader(s.ctx)
			return err == nil && leader(l) == again
		}
		return doing{
			act:      func(ctx context.Context) error { return l.Acknowledge(ctx, []byte("y")) },
			happened: shows,
			once:     true,
			lost:     []error{recipes.ErrNotHeld},
			single:   true,
			end:      func() error { return l.Resign(s.ctx) },
			between: []meddling{{
				name: "the first is deleted", // after Acknowledge has found it
				at:   zktest.Nth(2, zktest.Op(zkserver.OpMulti)),
				do:   func() error { return s.removeLike("/acks/") },
				then: func() {
					if !shows() {
						s.Error("the acknowledgement is missing")
					}
				},
			}},
		}
	}}, operation{"Leadership.Resign, after an acknowledgement", func(s *stage) doing {
		acknowledging := func(in recipes.Client) recipes.Leadership {
			l := leads(s, in)
			s.ok(l.Acknowledge(s.ctx, []byte("x")))
			return l
		}
		return doing{act: acknowledging(s.victim).Resign, after: func() error {
			err := acknowledging(s.other).Resign(s.ctx)
			calm()
			if n := s.below(stagePath + "/acks/"); n != 0 {
				s.Errorf("%d acknowledgements are left", n)
			}
			return err
		}}
	}})
}

package zookeeper_test

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func sharesOperations() []operation {
	join := func(s *stage, in recipes.Client) func(context.Context) (recipes.Portion, error) {
		return must.Get(in.Shares(stagePath, 2, recipes.SharesConfig{}))(s.T).Join
	}
	passes := func(s *stage) error {
		err := must.Get(join(s, s.other)(s.ctx))(s.T).Leave(s.ctx)
		// The member may have watched the list of members as it left. A change of the list ends
		// that watch.
		members := must.Get(s.other.Group(stagePath+"/members", recipes.GroupConfig{}))(s.T)
		return errors.Join(err, must.Get(members.Join(s.ctx, nil))(s.T).Leave(s.ctx))
	}
	return []operation{
		{"Shares.Join", func(s *stage) doing {
			var mine recipes.Portion
			return doing{
				act:   func(ctx context.Context) (err error) { mine, err = join(s, s.victim)(ctx); return err },
				end:   func() error { return mine.Leave(s.ctx) },
				after: func() error { return passes(s) },
			}
		}},
		{"Portion.Leave", func(s *stage) doing {
			mine := must.Get(join(s, s.victim)(s.ctx))(s.T)
			return doing{act: mine.Leave, after: func() error { return passes(s) }}
		}},
	}
}

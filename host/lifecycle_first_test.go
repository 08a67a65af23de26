package host_test

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contender stands in the line of a host: for its lock, or for its election.
type contender interface {
	Acquire(context.Context) (recipes.Hold, error)
}

type (
	locking  struct{ recipes.Client }
	campaign struct{ recipes.Client }
)

func (l locking) Acquire(ctx context.Context) (recipes.Hold, error) { return lockOf(ctx, l.Client) }

func (c campaign) Acquire(ctx context.Context) (recipes.Hold, error) {
	l, err := leadershipOf(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	return resigning{l}, nil
}

// resigning is a leadership that is given back like a lock.
type resigning struct{ recipes.Leadership }

func (r resigning) Release(ctx context.Context) error { return r.Resign(ctx) }

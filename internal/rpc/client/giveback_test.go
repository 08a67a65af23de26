package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/rpc/client"
	"github.com/zkrecipes/zkrecipes/internal/rpc/server"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// giveBack ends a grant.
type giveBack func(context.Context) error

// taken are the kinds of things that a session can hold, and how each is given back.
var taken = map[string]func(ctx context.Context, s recipes.Client) (giveBack, error){
	"lock": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, recipes.Lock.Acquire, recipes.Hold.Release)(s.Lock("/lock", recipes.LockConfig{}))
	},
	"shared lock": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, recipes.SharedLock.AcquireRead, recipes.SharedHold.Release)(s.SharedLock("/shared", recipes.SharedLockConfig{}))
	},
	"priority lock": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, recipes.PriorityLock.AcquireWrite, recipes.PriorityHold.Release)(s.PriorityLock("/priority", recipes.PriorityLockConfig{}))
	},
	"semaphore": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, recipes.Semaphore.Acquire, recipes.Hold.Release)(s.Semaphore("/semaphore", recipes.SemaphoreConfig{Permits: 1}))
	},
	"election": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) { return e.Campaign(ctx, nil) }
		return take(ctx, campaign, recipes.Leadership.Resign)(s.Election("/election", recipes.ElectionConfig{}))
	},
	"group": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		join := func(g recipes.Group, ctx context.Context) (recipes.Membership, error) { return g.Join(ctx, nil) }
		return take(ctx, join, recipes.Membership.Leave)(s.Group("/group", recipes.GroupConfig{}))
	},
	"name": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		register := func(n recipes.Names, ctx context.Context) (recipes.Registration, error) {
			return n.Register(ctx, "it", nil)
		}
		return take(ctx, register, recipes.Registration.Unregister)(s.Names("/names"))
	},
	"double barrier": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		enter := func(b recipes.DoubleBarrier, ctx context.Context) (recipes.Passage, error) { return b.Enter(ctx, nil) }
		return take(ctx, enter, recipes.Passage.Leave)(s.DoubleBarrier("/double", recipes.DoubleBarrierConfig{Size: 1}))
	},
	"element, acknowledged": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, receive, recipes.Delivery.Ack)(s.Queue("/queue", recipes.QueueConfig{}))
	},
	"element, returned": func(ctx context.Context, s recipes.Client) (giveBack, error) {
		return take(ctx, receive, recipes.Delivery.Return)(s.Queue("/queue", recipes.QueueConfig{}))
	},
}

func receive(q recipes.Queue, ctx context.Context) (recipes.Delivery, error) {
	if _, err := q.Put(ctx, nil); err != nil {
		return nil, err
	}
	return q.Receive(ctx)
}

func take[R, G any](ctx context.Context, by func(R, context.Context) (G, error), end func(G, context.Context) error) func(R, error) (giveBack, error) {
	return func(recipe R, err error) (giveBack, error) {
		if err != nil {
			return nil, err
		}
		g, err := by(recipe, ctx)
		return func(ctx context.Context) error { return end(g, ctx) }, err
	}
}

// A plugin that lets a session hold one thing is asked for one after the other. What was
// given back counts neither for the plugin's limit nor for the host's clock.
func TestWhatWasGivenBackIsNotHeld(t *testing.T) {
	for name, take := range taken {
		t.Run(name, func(t *testing.T) {
			s := newServedWithin(t, server.Limits{Grants: 1}).open(t, 0)
			for range 3 {
				end, err := take(ctx(t), s)
				if err != nil {
					t.Fatal(err)
				}
				if !client.Holding(s) {
					t.Error("granted, and nothing is held")
				}
				if _, err := taken["lock"](ctx(t), s); !errors.Is(err, recipes.ErrLimit) {
					t.Errorf("beside it: %v", err)
				}
				if err := end(ctx(t)); err != nil {
					t.Fatal(err)
				}
				if client.Holding(s) {
					t.Error("given back, and held")
				}
			}
		})
	}
}

package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// kind is a recipe whose grants can be resumed.
type kind struct {
	path          string
	permits       int
	shared        bool
	unqueued      bool // it has no wait queue
	unwrapped     bool // see scenario
	enter         func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error)
	resumeWaiting func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error)
	resume        func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error)
	release       func(ctx context.Context, g recipes.Grant) error
}

// kindOf makes a kind from the methods of a recipe.
func kindOf[R any, G recipes.Grant](path string, permits int, shared bool, of func(recipes.Client, func(recipes.Place)) (R, error), enter func(R, context.Context) (G, error), release func(G, context.Context) error) kind {
	asGrant := func(g G, err error) (recipes.Grant, error) {
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	return kind{
		path: path, permits: permits, shared: shared,
		enter: func(ctx context.Context, s recipes.Client, joined func(recipes.Place)) (recipes.Grant, error) {
			r, err := of(s, joined)
			if err != nil {
				return nil, err
			}
			return asGrant(enter(r, ctx))
		},
		resumeWaiting: func(ctx context.Context, s recipes.Client, znode string) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				ResumeWaiting(context.Context, string, bool) (G, error)
			}).ResumeWaiting(ctx, znode, false))
		},
		resume: func(ctx context.Context, s recipes.Client, k *kept, token recipes.Token) (recipes.Grant, error) {
			r, err := of(s, nil)
			if err != nil {
				return nil, err
			}
			return asGrant(any(r).(interface {
				Resume(context.Context, string, recipes.Token) (G, error)
			}).Resume(ctx, k.znode, token))
		},
		release: func(ctx context.Context, g recipes.Grant) error { return release(g.(G), ctx) },
	}
}

// resumed returns a scenario in which other processes resume the clients' sessions. The host makes
// the mistake m.
func resumed(name string, m mistake, pick func(*client) kind) scenario {
	what := pick(nil)
	sc := scenario{name: name, open: resumes(m), moves: true, unwrapped: what.unwrapped, begin: func(*World) game { return sessionTurns(pick) }}
	if what.permits == 1 {
		sc.paths = []string{what.path}
	}
	if !what.unqueued {
		sc.line = what.path
	}
	return sc
}

// choose returns one of the choices at random, or the first if c is nil.
func choose[T any](c *client, choices ...T) T {
	if c == nil {
		return choices[0]
	}
	return pick(c.chance, choices...)
}

// sessionTurns takes a turn with the kind that pick returns. Half of the turns have two contenders
// at the same time.
func sessionTurns(pick func(*client) kind) game {
	one := func(ctx context.Context, c *client, s recipes.Client) error {
		wait, cancel := c.patience(ctx)
		defer cancel()
		what := pick(c)
		k, err := s.(*survivor).acquire(wait, what)
		// A name has no wait queue. So during faults the client retries a taken name, and after
		// them such a turn counts: otherwise some clients would starve.
		for errors.Is(err, recipes.ErrNodeExists) && c.world.calm.Err() == nil && c.step(wait, c.chance.about(50*time.Millisecond)) == nil {
			k, err = s.(*survivor).acquire(wait, what)
		}
		if errors.Is(err, recipes.ErrNodeExists) {
			return nil
		}
		if err != nil {
			return err
		}
		g := &grant{client: c, session: s, path: what.path, Grant: k, shared: what.shared, journaled: what.permits == 1}
		return c.hold(ctx, g, what.permits, k.release)
	}
	return game{turn: func(ctx context.Context, c *client, s recipes.Client) error {
		var second error
		var both sync.WaitGroup
		if c.chance.chance(50) {
			both.Go(func() { second = one(ctx, c, s) })
		}
		first := one(ctx, c, s)
		both.Wait()
		if second != nil && !expected(second) {
			return second
		}
		return first
	}}
}

package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// kind is a recipe that grants its path to one contender at a time. Each kindTest runs against
// every kind.
type kind struct {
	name     string
	marker   string // precedes the sequence number in the names of znodes
	strategy recipes.Strategy
	open     func(s recipes.Client, path string, o options) (line, error)
}

// options are the fields that the recipes' configurations share.
type options struct {
	strategy recipes.Strategy
	dialect  recipes.Dialect
	data     string
	priority int // of a priority lock
	joined   func(recipes.Place)
}

// line is the wait queue of a recipe at a path.
type line struct {
	Path       func() string
	Enter      func(context.Context) (grant, error)
	Contenders func(context.Context) ([]recipes.Contender, error)
}

// grant is a hold or a leadership. Release releases the hold, or resigns.
type grant struct {
	recipes.Grant
	Release func(context.Context) error
}

// lineOf makes a line of the result of a constructor and the methods of its recipe.
func lineOf[R interface{ Path() string }, G recipes.Grant](
	r R, err error,
	enter func(R, context.Context) (G, error),
	contenders func(R, context.Context) ([]recipes.Contender, error),
	release func(G, context.Context) error,
) (line, error) {
	if err != nil {
		return line{}, err
	}
	return line{
		Path: r.Path,
		Enter: func(ctx context.Context) (grant, error) {
			g, err := enter(r, ctx)
			if err != nil {
				return grant{}, err
			}
			return grant{g, func(ctx context.Context) error { return release(g, ctx) }}, nil
		},
		Contenders: func(ctx context.Context) ([]recipes.Contender, error) { return contenders(r, ctx) },
	}, nil
}

var lockKind = kind{name: "lock", marker: "lock-",
	open: func(s recipes.Client, path string, o options) (line, error) {
		l, err := s.Lock(path, recipes.LockConfig{
			Strategy: o.strategy, Dialect: o.dialect, Data: []byte(o.data), Joined: o.joined,
		})
		return lineOf(l, err, recipes.Lock.Acquire, recipes.Lock.Contenders, recipes.Hold.Release)
	}}

var electionKind = kind{name: "election", marker: "n_",
	open: func(s recipes.Client, path string, o options) (line, error) {
		e, err := s.Election(path, recipes.ElectionConfig{Strategy: o.strategy, Dialect: o.dialect, Joined: o.joined})
		campaign := func(e recipes.Election, ctx context.Context) (recipes.Leadership, error) {
			return e.Campaign(ctx, []byte(o.data))
		}
		return lineOf(e, err, campaign, recipes.Election.Candidates, recipes.Leadership.Resign)
	}}

// by returns the kind with each of the strategies.
func (k kind) by(strategies ...recipes.Strategy) (kinds []kind) {
	for _, k.strategy = range strategies {
		kinds = append(kinds, k)
	}
	return kinds
}

// kindTest is a test that every kind must pass.
type kindTest struct {
	name string
	run  func(*fixture, kind)
}

// of returns the test for one kind.
func (k kind) of(run func(*fixture, kind)) func(*fixture) {
	return func(f *fixture) { run(f, k) }
}

func forKinds(kinds []kind, tests []kindTest) []test {
	var all []test
	for _, k := range kinds {
		for _, t := range tests {
			all = append(all, test{k.name + "/" + string(k.strategy) + "/" + t.name, k.of(t.run)})
		}
	}
	return all
}

// queued returns the tests of a recipe whose waiters keep their znodes when they are granted.
func queued(k kind, strategies ...recipes.Strategy) []test {
	return forKinds(k.by(strategies...), slices.Concat(placeTests(), lineTests()))
}

// at returns the wait queue at a path.
func (k kind) at(f *fixture, s recipes.Client, path string) line {
	f.Helper()
	return k.with(f, s, path, options{})
}

func (k kind) with(f *fixture, s recipes.Client, path string, o options) line {
	f.Helper()
	if o.strategy == "" {
		o.strategy = k.strategy
	}
	return must.Get(k.open(s, path, o))(f)
}

// granted enters a wait queue in which no contender is ahead.
func (k kind) granted(f *fixture, s recipes.Client, path string) grant {
	f.Helper()
	return get(f, k.at(f, s, path).Enter)
}

// waits enters a wait queue, and returns when the contender has joined it.
func (k kind) waits(f *fixture, s recipes.Client, path string) *waitingCall[grant] {
	f.Helper()
	return k.waitsWith(f, s, path, options{})
}

func (k kind) waitsWith(f *fixture, s recipes.Client, path string, o options) *waitingCall[grant] {
	f.Helper()
	return waits(f, func(joined func(recipes.Place)) func(context.Context) (grant, error) {
		o.joined = joined
		return k.with(f, s, path, o).Enter
	})
}

// hands reports whether a release grants the lock to the successor: the strategy is Handoff,
// and the recipe and the server support it.
func (k kind) hands(f *fixture) bool {
	return f.since35() && (k.strategy == recipes.Handoff || k.strategy == "") && slices.Contains([]string{"lock-", "n_", "lease-"}, k.marker)
}

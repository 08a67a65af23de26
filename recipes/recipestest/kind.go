package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// kind is a way to get a grant that grants its path to one contender at a time. Each kindTest runs
// against every kind.
type kind struct {
	name     string // in the names of tests
	way      grants.Way
	strategy recipes.Strategy
}

type options = grants.Options

var (
	lockKind      = kind{name: "lock", way: grants.Named("lock")}
	electionKind  = kind{name: "election", way: grants.Named("election")}
	semaphoreKind = kind{name: "one permit", way: grants.Named("semaphore")}
	slotKind      = kind{name: "one slot", way: grants.Named("slots")}
	readersKind   = kind{name: "readers", way: grants.Named("shared lock for reading")}
	writersKind   = kind{name: "writers", way: grants.Named("shared lock for writing")}
	priorityKind  = kind{name: "writers", way: grants.Named("priority lock for writing")}
)

// line is the wait queue of a recipe at a path.
type line struct {
	Path       func() string
	Enter      func(context.Context) (grant, error)
	Contenders func(context.Context) ([]recipes.Contender, error)
}

// grant is a grant of any recipe. Release gives it back.
type grant struct {
	recipes.Grant
	Release func(context.Context) error
}

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
	if o.Strategy == "" {
		o.Strategy = k.strategy
	}
	return must.Get(k.open(s, path, o))(f)
}

func (k kind) open(s recipes.Client, path string, o options) (line, error) {
	e, err := k.way.Open(s, path, o)
	return line{e.Path, func(ctx context.Context) (grant, error) {
		g, err := e.Get(ctx)
		if err != nil {
			return grant{}, err
		}
		return grant{g, func(ctx context.Context) error { return k.way.GiveBack(ctx, g) }}, nil
	}, e.Contenders}, err
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
		o.Joined = joined
		return k.with(f, s, path, o).Enter
	})
}

// hands reports whether a release grants the lock to the successor: the strategy is Handoff,
// and the recipe and the server support it.
func (k kind) hands(f *fixture) bool {
	return f.since35() && (k.strategy == recipes.Handoff || k.strategy == "") && slices.Contains([]string{"lock-", "n_", "lease-"}, k.way.Marker)
}

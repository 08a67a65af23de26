package recipestest

import (
	"context"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// kind is what a lock and an election have in common, so that one test serves
// both: contenders that stand in line at a path, and are granted in turn.
type kind struct {
	name     string
	marker   string // before the sequence number in the names of znodes
	strategy recipes.Strategy
	take     func(s recipes.Client, path string, o options) (line, error)
}

// options are those of recipes.LockConfig and recipes.ElectionConfig.
type options struct {
	strategy recipes.Strategy
	data     string
	joined   func(recipes.Place)
}

// line is a lock or an election.
type line interface {
	Path() string
	Enter(ctx context.Context) (grant, error)
	Contenders(ctx context.Context) ([]recipes.Contender, error)
}

// grant is a hold or a leadership.
type grant interface {
	recipes.Grant
	GiveBack(ctx context.Context) error
}

func lockKinds() []kind {
	var kinds []kind
	for _, s := range recipes.Strategies() {
		kinds = append(kinds, lockKind(s))
	}
	return kinds
}

func electionKinds() []kind {
	var kinds []kind
	for _, s := range recipes.Strategies() {
		kinds = append(kinds, electionKind(s))
	}
	return kinds
}

func lockKind(strategy recipes.Strategy) kind {
	return kind{name: "lock", marker: "lock-", strategy: strategy,
		take: func(s recipes.Client, path string, o options) (line, error) {
			l, err := s.Lock(path, recipes.LockConfig{Strategy: o.strategy, Data: []byte(o.data), Joined: o.joined})
			return lockLine{l}, err
		}}
}

func electionKind(strategy recipes.Strategy) kind {
	return kind{name: "election", marker: "n_", strategy: strategy,
		take: func(s recipes.Client, path string, o options) (line, error) {
			e, err := s.Election(path, recipes.ElectionConfig{Strategy: o.strategy, Joined: o.joined})
			return electionLine{e, o.data}, err
		}}
}

type lockLine struct{ recipes.Lock }

func (l lockLine) Enter(ctx context.Context) (grant, error) {
	h, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return lockGrant{h}, nil
}

type lockGrant struct{ recipes.Hold }

func (g lockGrant) GiveBack(ctx context.Context) error { return g.Release(ctx) }

type electionLine struct {
	recipes.Election
	proposal string
}

func (e electionLine) Enter(ctx context.Context) (grant, error) {
	l, err := e.Campaign(ctx, []byte(e.proposal))
	if err != nil {
		return nil, err
	}
	return electionGrant{l}, nil
}

func (e electionLine) Contenders(ctx context.Context) ([]recipes.Contender, error) {
	return e.Candidates(ctx)
}

type electionGrant struct{ recipes.Leadership }

func (g electionGrant) GiveBack(ctx context.Context) error { return g.Resign(ctx) }

// kindTest is a test of what all kinds promise.
type kindTest struct {
	name string
	run  func(*fixture, kind)
}

func forKinds(kinds []kind, tests []kindTest) []test {
	var all []test
	for _, k := range kinds {
		for _, t := range tests {
			name := k.name + "/" + string(k.strategy) + "/" + t.name
			all = append(all, test{name, func(f *fixture) { t.run(f, k) }})
		}
	}
	return all
}

// at returns the line at a path.
func (k kind) at(f *fixture, s recipes.Client, path string) line {
	f.Helper()
	return k.with(f, s, path, options{})
}

func (k kind) with(f *fixture, s recipes.Client, path string, o options) line {
	f.Helper()
	if o.strategy == "" {
		o.strategy = k.strategy
	}
	l, err := k.take(s, path, o)
	f.must(err)
	return l
}

// granted enters a line in which nobody is ahead.
func (k kind) granted(f *fixture, s recipes.Client, path string) grant {
	f.Helper()
	g, err := k.at(f, s, path).Enter(f.ctx)
	f.must(err)
	return g
}

// waiter is a contender that has joined the line and has not been granted yet.
type waiter struct {
	*pending[grant]
	place  recipes.Place
	cancel context.CancelFunc
}

// waits enters a line and returns when the contender has joined it.
func (k kind) waits(f *fixture, s recipes.Client, path string) *waiter {
	f.Helper()
	return k.waitsWith(f, s, path, options{})
}

func (k kind) waitsWith(f *fixture, s recipes.Client, path string, o options) *waiter {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	o.joined = func(p recipes.Place) { joined <- p }
	l := k.with(f, s, path, o)
	ctx, cancel := context.WithCancel(f.ctx)
	w := &waiter{cancel: cancel}
	w.pending = start(f, func() (grant, error) { return l.Enter(ctx) })
	f.Cleanup(cancel) // before start's clean-up, which waits for the call
	w.place = receive(f, joined, "joining the line")
	return w
}

// hands reports whether the line is handed on: the strategy is handoff, and the
// recipe can do it.
func (k kind) hands() bool {
	return (k.strategy == recipes.Handoff || k.strategy == "") && slices.Contains([]string{"lock-", "n_", "lease-"}, k.marker)
}

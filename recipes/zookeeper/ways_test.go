package zookeeper_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A way is one way to get a grant: a method of a recipe, and how the recipe is configured.
// The ways of all recipes are one table. These techniques run over it:
//
//	line_operations_test.go  each is an operation: free, between two others, given back
//	resume_test.go           another process resumes what was granted
//	resume_waiting_test.go   another process resumes a waiter
//	line_foreign_test.go     it refuses third-party contenders
//	grant_*_test.go          a grant ends, comes late, or outlives its session
//
// A new recipe adds its ways to its file of operations, and names them in tableOfWays.
type way struct {
	name                 string // of the recipe and of the kind of grant
	method, tries, gives string // methods to get a grant, to get one without waiting, and to give it back
	kind                 recipes.Kind
	share                int // the share of the path that a grant takes; 0: the whole
	// rival is another way of the same recipe, whose grants exclude the grants of this one.
	rival *way
	// shares are the names of the peers with which the way shares a wait queue, for each
	// dialect in which it can be opened.
	shares map[recipes.Dialect][]string
	uses   []use

	options  options
	open     func(s recipes.Client, path string, o options) (entrance, error)
	giveBack func(ctx context.Context, g recipes.Grant) error
}

// options configure a recipe. A recipe that lacks an option ignores it.
type options struct {
	strategy  recipes.Strategy
	dialect   recipes.Dialect
	permits   int // 0: one
	revocable bool
	joined    func(recipes.Place)
}

// technique is a set of techniques.
type technique int

const (
	operated technique = 1 << iota // it is among the operations
	held                           // a grant is resumed
	moved                          // a waiter is resumed
	waited                         // a waiter waits, and cannot be resumed
)

// use is a configuration of a way, and the techniques that run over it.
type use struct {
	in technique
	options
}

// entrance is a recipe that was opened at a path, with the methods of a way.
type entrance struct {
	get           func(context.Context) (recipes.Grant, error)
	try           func(context.Context) (recipes.Grant, error) // nil: the way has no try
	resume        func(ctx context.Context, znode string, token recipes.Token) (recipes.Grant, error)
	resumeWaiting func(ctx context.Context, znode string) (recipes.Grant, error)
}

type resumer[G recipes.Grant] interface {
	Resume(ctx context.Context, znode string, token recipes.Token) (G, error)
}

type waitingResumer[G recipes.Grant] interface {
	ResumeWaiting(ctx context.Context, znode string, try bool) (G, error)
}

// wayBy completes a way by methods of its recipe.
func wayBy[R any, G recipes.Grant](w way, open func(recipes.Client, string, options) (R, error), get, try func(R, context.Context) (G, error), giveBack func(G, context.Context) error) way {
	asGrant := func(g G, err error) (recipes.Grant, error) {
		switch {
		case err == nil:
			return g, nil
		case any(g) != nil:
			return nil, fmt.Errorf("a grant was returned with the error %v", err)
		}
		return nil, err
	}
	w.giveBack = func(ctx context.Context, g recipes.Grant) error { return giveBack(g.(G), ctx) }
	w.open = func(s recipes.Client, path string, o options) (entrance, error) {
		r, err := open(s, path, o)
		if err != nil {
			return entrance{}, err
		}
		e := entrance{
			get: func(ctx context.Context) (recipes.Grant, error) { return asGrant(get(r, ctx)) },
			resume: func(ctx context.Context, znode string, token recipes.Token) (recipes.Grant, error) {
				return asGrant(any(r).(resumer[G]).Resume(ctx, znode, token))
			},
			resumeWaiting: func(ctx context.Context, znode string) (recipes.Grant, error) {
				return asGrant(any(r).(waitingResumer[G]).ResumeWaiting(ctx, znode, false))
			},
		}
		if try != nil {
			e.try = func(ctx context.Context) (recipes.Grant, error) { return asGrant(try(r, ctx)) }
		}
		return e, nil
	}
	return w
}

// ways returns the ways of a technique, each in all configurations for that technique.
func ways(in technique) (all []way) {
	for _, w := range tableOfWays() {
		for _, u := range w.uses {
			if u.in&in == 0 {
				continue
			}
			configured := w
			configured.options = u.options
			if u.strategy != "" {
				configured.name += " by " + string(u.strategy)
			}
			if u.dialect != "" {
				configured.name += " of " + string(u.dialect)
			}
			all = append(all, configured)
		}
	}
	return all
}

// wayTo returns the way with that name, in a dialect. A semaphore has two permits.
func wayTo(name string, d recipes.Dialect) way {
	all := tableOfWays()
	w := all[slices.IndexFunc(all, func(w way) bool { return w.name == name })]
	w.options = options{dialect: d, permits: 2}
	return w
}

// by returns the way with a strategy.
func (w way) by(s recipes.Strategy) way {
	w.options.strategy = s
	return w
}

// at opens the recipe of the way at a path.
func (w way) at(t *testing.T, s recipes.Client, path string) entrance {
	t.Helper()
	return must.Get(w.open(s, path, w.options))(t)
}

// enter gets a grant. It calls joined when the contender's znode exists.
func (w way) enter(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Grant, error) {
	o := w.options
	o.joined = joined
	e, err := w.open(s, path, o)
	if err != nil {
		return nil, err
	}
	return e.get(ctx)
}

// try gets a grant without waiting. If the way has no try, the contender gives up as soon as
// its znode exists.
func (w way) try(ctx context.Context, s recipes.Client, path string) (recipes.Grant, error) {
	e, err := w.open(s, path, w.options)
	if err != nil {
		return nil, err
	}
	if e.try != nil {
		return e.try(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return w.enter(ctx, s, path, func(recipes.Place) { cancel() })
}

// turn gets a grant and gives it back.
func (w way) turn(ctx context.Context, s recipes.Client, path string) error {
	g, err := w.enter(ctx, s, path, nil)
	if err != nil {
		return err
	}
	return w.giveBack(ctx, g)
}

// rivals returns the way whose grants exclude the grants of this one.
func (w way) rivals() way {
	if w.rival == nil {
		return w
	}
	r := *w.rival
	r.options = w.options
	return r
}

// part is the share of the path that a grant takes.
func (w way) part() int { return cmp.Or(w.share, whole) }

// readWriter is a lock for readers and writers.
type readWriter[H recipes.Hold] interface {
	AcquireRead(ctx context.Context) (H, error)
	AcquireWrite(ctx context.Context) (H, error)
	TryRead(ctx context.Context) (H, error)
	TryWrite(ctx context.Context) (H, error)
}

// readWriteWays completes the two ways of such a lock.
func readWriteWays[H recipes.Hold, L readWriter[H]](read, write way, of string, open func(recipes.Client, string, options) (L, error)) []way {
	read.method, read.tries, read.gives, read.share = of+".AcquireRead", of+".TryRead", "Hold.Release", aReader
	write.method, write.tries, write.gives = of+".AcquireWrite", of+".TryWrite", "Hold.Release"
	read = wayBy(read, open, L.AcquireRead, L.TryRead, H.Release)
	write = wayBy(write, open, L.AcquireWrite, L.TryWrite, H.Release)
	readers, writers := read, write
	read.rival, write.rival = &writers, &readers
	return []way{read, write}
}

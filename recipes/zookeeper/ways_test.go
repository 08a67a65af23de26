package zookeeper_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A way is one way to get a grant: a method of a recipe, and how the recipe is configured.
// internal/grants is the catalog of the methods. These techniques run over it:
//
//	line_operations_test.go  each is an operation: free, between two others, given back
//	resume_test.go           another process resumes only what it held
//	resume_waiting_test.go   a waiter that another process resumes can leave
//	line_foreign_test.go     it refuses third-party contenders
//	grant_*_test.go          a grant ends, comes late, or outlives its session
//
// A new recipe adds its ways to its file of operations, and names them in tableOfWays.
type way struct {
	grants.Way
	share int // the share of the path that a grant takes; 0: the whole
	// rival is another way of the same recipe, whose grants exclude the grants of this one.
	rival *way
	// shares are the names of the peers with which the way shares a wait queue, for each
	// dialect in which it can be opened.
	shares map[recipes.Dialect][]string
	uses   []use

	options options
}

type options = grants.Options

// technique is a set of techniques.
type technique int

const (
	operated technique = 1 << iota // the way is among the operations
	held                           // a grant is resumed
	moved                          // a waiter is resumed
	waited                         // a waiter waits, and cannot be resumed
)

// use is a configuration of a way, and the techniques that run over it.
type use struct {
	in technique
	options
}

// wayOf completes the way of the catalog with that name. with, if not nil, sets more options
// when it is opened.
func wayOf(name string, w way, with func(*options)) way {
	w.Way = grants.Named(name)
	if with == nil {
		return w
	}
	open := w.Open
	w.Open = func(s recipes.Recipes, path string, o options) (grants.Entrance, error) {
		with(&o)
		return open(s, path, o)
	}
	return w
}

// after returns the way with do, which it calls before it gets a grant.
func (w way) after(do func(ctx context.Context, s recipes.Recipes, path string) error) way {
	open := w.Open
	w.Open = func(s recipes.Recipes, path string, o options) (grants.Entrance, error) {
		e, err := open(s, path, o)
		get := e.Get
		e.Get = func(ctx context.Context) (recipes.Grant, error) {
			if err := do(ctx, s, path); err != nil {
				return nil, err
			}
			return get(ctx)
		}
		return e, err
	}
	return w
}

// A way of the catalog is among the ways here, so that the techniques run over it. The only
// exception is the double barrier: it has operations of its own, with the other members that it
// waits for.
func TestTheWaysAreThoseOfTheCatalog(t *testing.T) {
	all := tableOfWays()
	for _, of := range grants.All() {
		if of.Name != "passage" && !slices.ContainsFunc(all, func(w way) bool { return w.Name == of.Name && len(w.uses) > 0 }) {
			t.Errorf("no technique runs over the %s", of.Name)
		}
	}
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
			if u.Strategy != "" {
				configured.Name += " by " + string(u.Strategy)
			}
			if u.Dialect != "" {
				configured.Name += " of " + string(u.Dialect)
			}
			all = append(all, configured)
		}
	}
	return all
}

// wayTo returns the way with that name, in a dialect. A semaphore has two permits.
func wayTo(name string, d recipes.Dialect) way {
	all := tableOfWays()
	w := all[slices.IndexFunc(all, func(w way) bool { return w.Name == name })]
	w.options = options{Dialect: d, Permits: 2}
	return w
}

// by returns the way with a strategy.
func (w way) by(s recipes.Strategy) way {
	w.options.Strategy = s
	return w
}

// at opens the recipe of the way at a path.
func (w way) at(t *testing.T, s recipes.Client, path string) grants.Entrance {
	t.Helper()
	return must.Get(w.Open(s, path, w.options))(t)
}

// enter gets a grant. It calls joined when the contender's znode exists.
func (w way) enter(ctx context.Context, s recipes.Client, path string, joined func(recipes.Place)) (recipes.Grant, error) {
	o := w.options
	o.Joined = joined
	e, err := w.Open(s, path, o)
	if err != nil {
		return nil, err
	}
	return e.Get(ctx)
}

// try gets a grant without waiting. If the way has no try, the contender gives up as soon as
// its znode exists.
func (w way) try(ctx context.Context, s recipes.Client, path string) (recipes.Grant, error) {
	e, err := w.Open(s, path, w.options)
	if err != nil {
		return nil, err
	}
	if e.Try != nil {
		return e.Try(ctx)
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
	return w.GiveBack(ctx, g)
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

// rivals returns the two ways of a lock for readers and writers.
func rivals(read, write way) []way {
	read.share = aReader
	readers, writers := read, write
	read.rival, write.rival = &writers, &readers
	return []way{read, write}
}

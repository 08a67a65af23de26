// Package grants is the catalog of the ways to get a grant. Whatever has to do the same with the
// grants of every recipe ranges over it: the contract's tests, the matrices of faults and of
// resuming, the simulation.
//
// It knows only the contract. TestEveryGrantIsInTheCatalog finds a method of the contract that
// returns a grant and is missing here.
package grants

import (
	"context"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// A Way is one way to get a grant: a method of a recipe that waits for it.
type Way struct {
	Name     string       // name of the recipe, and of the kind of grant if the recipe has several
	Kind     recipes.Kind // of the contenders; "" if the recipe has no wait queue
	Marker   string       // precedes the sequence number in the name of the znode; "" if that has none
	Dialects []recipes.Dialect

	Method string // method that waits for a grant: "Lock.Acquire"
	Tries  string // method that does not wait; "" if there is none
	Gives  string // method that gives the grant back

	// Open opens the recipe at a path. It sends nothing. A recipe ignores options that it does
	// not have.
	Open func(s recipes.Recipes, path string, o Options) (Entrance, error)
	// GiveBack gives back a grant of this way.
	GiveBack func(context.Context, recipes.Grant) error
}

// Options configure a recipe and its contenders.
type Options struct {
	Strategy  recipes.Strategy
	Dialect   recipes.Dialect
	Permits   int // of a semaphore, and the size of a double barrier; 0: one
	Priority  int
	Ask       bool
	Revocable bool
	Grace     time.Duration
	Name      string // of a member or a registration
	Data      []byte
	Joined    func(recipes.Place)
}

// An Entrance is a recipe that was opened at a path, with the methods of a way.
type Entrance struct {
	Get func(context.Context) (recipes.Grant, error)
	Try func(context.Context) (recipes.Grant, error) // nil: the way has no try

	Path func() string

	// Contenders lists the wait queue. It is nil if the recipe has none.
	Contenders func(context.Context) ([]recipes.Contender, error)

	// Resume and ResumeWaiting fail with ErrUnsupported if the session is not one of
	// recipes/zookeeper, which a plugin serves.
	Resume        func(ctx context.Context, znode string, token recipes.Token) (recipes.Grant, error)
	ResumeWaiting func(ctx context.Context, znode string) (recipes.Grant, error)
}

// Named returns the way with that name.
func Named(name string) Way {
	for _, w := range All() {
		if w.Name == name {
			return w
		}
	}
	panic(fmt.Sprintf("no way to get a grant is named %q", name))
}

// get gets a grant from a recipe with these options.
type get[R any, G recipes.Grant] func(R, context.Context, Options) (G, error)

// by is a get that needs no options.
func by[R any, G recipes.Grant](method func(R, context.Context) (G, error)) get[R, G] {
	return func(r R, ctx context.Context, _ Options) (G, error) { return method(r, ctx) }
}

// complete completes a way by the methods of its recipe.
func complete[R any, G recipes.Grant](w Way, open func(recipes.Recipes, string, Options) (R, error), wait, try get[R, G], giveBack func(G, context.Context) error) Way {
	w.GiveBack = func(ctx context.Context, g recipes.Grant) error { return giveBack(g.(G), ctx) }
	w.Open = func(s recipes.Recipes, path string, o Options) (Entrance, error) {
		r, err := open(s, path, o)
		if err != nil {
			return Entrance{}, err
		}
		e := entrance[G](r)
		e.Get = func(ctx context.Context) (recipes.Grant, error) { return grant(wait(r, ctx, o)) }
		if try != nil {
			e.Try = func(ctx context.Context) (recipes.Grant, error) { return grant(try(r, ctx, o)) }
		}
		return e, nil
	}
	return w
}

// grant returns a nil Grant with an error. A grant beside an error would leak, and is reported.
func grant[G recipes.Grant](g G, err error) (recipes.Grant, error) {
	switch {
	case err == nil:
		return g, nil
	case any(g) != nil:
		return nil, fmt.Errorf("a grant was returned with the error %v", err)
	}
	return nil, err
}

// entrance has what all recipes have in common.
func entrance[G recipes.Grant](recipe any) (e Entrance) {
	e.Path = recipe.(interface{ Path() string }).Path
	switch r := recipe.(type) {
	case interface {
		Contenders(context.Context) ([]recipes.Contender, error)
	}:
		e.Contenders = r.Contenders
	case recipes.Election:
		e.Contenders = r.Candidates
	}
	e.Resume = func(ctx context.Context, znode string, token recipes.Token) (recipes.Grant, error) {
		r, ok := recipe.(interface {
			Resume(context.Context, string, recipes.Token) (G, error)
		})
		if !ok {
			return nil, fmt.Errorf("%w: %T does not resume a grant", recipes.ErrUnsupported, recipe)
		}
		return grant(r.Resume(ctx, znode, token))
	}
	e.ResumeWaiting = func(ctx context.Context, znode string) (recipes.Grant, error) {
		r, ok := recipe.(interface {
			ResumeWaiting(context.Context, string, bool) (G, error)
		})
		if !ok {
			return nil, fmt.Errorf("%w: %T does not resume a waiter", recipes.ErrUnsupported, recipe)
		}
		return grant(r.ResumeWaiting(ctx, znode, false))
	}
	return e
}

package recipestest

import (
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// takes returns a call for each recipe with contenders, which is granted if the path is free. The
// key is the recipe's name in ForeignError.
func (f *fixture) takes() map[string]func(s recipes.Client, path string) (recipes.Grant, error) {
	return map[string]func(s recipes.Client, path string) (recipes.Grant, error){
		"Lock": func(s recipes.Client, path string) (recipes.Grant, error) {
			return f.lock(s, path).Acquire(f.ctx)
		},
		"Semaphore": func(s recipes.Client, path string) (recipes.Grant, error) {
			return f.semaphore(s, path, 2).Acquire(f.ctx)
		},
		"SharedLock": func(s recipes.Client, path string) (recipes.Grant, error) {
			return f.shared(s, path).AcquireRead(f.ctx)
		},
		"PriorityLock": func(s recipes.Client, path string) (recipes.Grant, error) {
			l, err := s.PriorityLock(path, recipes.PriorityLockConfig{})
			f.must(err)
			return l.AcquireRead(f.ctx)
		},
		"Election": func(s recipes.Client, path string) (recipes.Grant, error) {
			return f.election(s, path).Campaign(f.ctx, nil)
		},
	}
}

// recipesRefuse tries each pair of recipes at one path.
func recipesRefuse(f *fixture) {
	one, two := f.open(), f.open()
	for held, hold := range f.takes() {
		for name, take := range f.takes() {
			if name == held {
				continue
			}
			path := f.path(held + "-" + name)
			h, err := hold(one, path)
			f.must(err)
			for _, s := range []recipes.Client{one, two} { // the holder's own session is refused too
				_, err = take(s, path)
				want := recipes.ForeignError{Dialect: recipes.ZooKeeper, Recipe: held, Znode: h.Znode()}
				var got *recipes.ForeignError
				if !errors.As(err, &got) || *got != want {
					f.Errorf("%s beside a %s: %v; want %v", name, held, err, &want)
				}
			}
			f.held(h)
			f.awaitChildren(path, 1)
		}
	}
}

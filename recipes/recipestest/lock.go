package recipestest

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// lockTests tests what a lock promises beyond placeTests and lineTests.
func lockTests() []test {
	return []test{
		{"try/a free lock is granted; a held one is ErrContended, and the contender leaves", func(f *fixture) {
			h := f.acquire(f.open(), f.path("a"))
			_, err := f.lock(f.open(), f.path("a")).TryAcquire(f.ctx)
			f.is(err, recipes.ErrContended)
			f.isNot(err, recipes.ErrNotHeld, recipes.ErrSessionLost)
			names := f.children(f.path("a"))
			f.failIf(len(names) != 1, "the wait queue is %v; want only the holder", names)
			f.held(h)
			f.must(h.Release(f.ctx))
			f.held(get(f, f.lock(f.open(), f.path("a")).TryAcquire))
		}},
		{"try/two Locks with one path are the same lock: one that the session holds itself is ErrContended", func(f *fixture) {
			s := f.open()
			f.acquire(s, f.path("a"))
			f.is(errOf(f.lock(s, f.path("a")).TryAcquire(f.ctx)), recipes.ErrContended)
		}},
		{"try/Joined is called with the place", func(f *fixture) {
			s := f.open()
			f.acquire(s, f.path("a"))
			var places []recipes.Place
			joined := func(p recipes.Place) { places = append(places, p) }
			l := must.Get(s.Lock(f.path("a"), recipes.LockConfig{Joined: joined}))(f)
			f.is(errOf(l.TryAcquire(f.ctx)), recipes.ErrContended)
			if len(places) != 1 || places[0].Position != 1 {
				f.Errorf("joined was called with %v; want one call with position 1", places)
			}
		}},
		{"try/exactly one of many concurrent calls is granted", func(f *fixture) {
			const n = 8
			s := f.open()
			f.create(f.path("a"), "")
			var calls []*pending[recipes.Hold]
			for range n {
				l := f.lock(s, f.path("a"))
				calls = append(calls, start(f, func() (recipes.Hold, error) { return l.TryAcquire(f.ctx) }))
			}
			granted := 0
			for _, c := range calls {
				if _, err := c.result(f); err != nil {
					f.is(err, recipes.ErrContended)
					continue
				}
				granted++
			}
			f.failIf(granted != 1, "%d were granted; want 1", granted)
			names := f.children(f.path("a"))
			f.failIf(len(names) != 1, "the wait queue is %v; want only the holder", names)
		}},
		{"try/a call waits for the server until the context ends", func(f *fixture) {
			s := f.open()
			f.relay(s).Hold()
			_, err := f.lock(s, f.path("a")).TryAcquire(f.briefly())
			f.is(err, context.DeadlineExceeded)
			f.isNot(err, recipes.ErrContended)
			f.relay(s).Restore()
			// The call has left no contender.
			f.must(f.acquire(s, f.path("a")).Release(f.ctx))
			f.awaitChildren(f.path("a"), 0)
		}},
		{"another recipe's contender at the path is ErrForeign", func(f *fixture) {
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
						if got, ok := errors.AsType[*recipes.ForeignError](err); !ok || *got != want {
							f.Errorf("%s beside a %s: %v; want %v", name, held, err, &want)
						}
					}
					f.held(h)
					f.awaitChildren(path, 1)
				}
			}
		}},
	}
}

func (f *fixture) lock(s recipes.Recipes, path string) recipes.Lock {
	f.Helper()
	return must.Get(s.Lock(path, recipes.LockConfig{}))(f)
}

func (f *fixture) acquire(s recipes.Recipes, path string) recipes.Hold {
	f.Helper()
	return get(f, f.lock(s, path).Acquire)
}

// takes returns, for each recipe with contenders, a call that is granted if the path is free. The
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
			l := must.Get(s.PriorityLock(path, recipes.PriorityLockConfig{}))(f)
			return l.AcquireRead(f.ctx)
		},
		"Election": func(s recipes.Client, path string) (recipes.Grant, error) {
			return f.election(s, path).Campaign(f.ctx, nil)
		},
	}
}

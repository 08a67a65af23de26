package recipestest

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// acquireAll acquires the locks "a" and "b" and a permit of "c", in another order.
func (f *fixture) acquireAll(ctx context.Context, s recipes.Client) (recipes.Holds, error) {
	return recipes.AcquireAll(ctx, f.semaphore(s, f.path("c"), 2), f.lock(s, f.path("b")), f.lock(s, f.path("a")))
}

// holdsAll is acquireAll where all are free.
func (f *fixture) holdsAll(s recipes.Client) recipes.Holds {
	f.Helper()
	return must.Get(f.acquireAll(f.ctx, s))(f)
}

// only returns the only contender at a path that is not one of others.
func (f *fixture) only(path string, others ...string) string {
	f.Helper()
	for _, name := range f.children(path) {
		if name != "guards-lock-9999999999" && !slices.Contains(others, name) {
			return path + "/" + name
		}
	}
	f.Fatalf("%s has no contender", path)
	return ""
}

// unheld checks the error of a guarded write: the grant that the operation checks was removed.
func (f *fixture) unheld(err error, index int) {
	f.Helper()
	var refusal *recipes.WriteError
	f.failIf(!errors.As(err, &refusal) || refusal.Index != index, "error %v; want a *recipes.WriteError of operation %d", err, index)
	f.is(err, recipes.ErrNotHeld, recipes.ErrRemoved)
}

func acquireAllTests() []test {
	return []test{
		{"all are held, with their tokens, and released together", func(f *fixture) {
			h := f.holdsAll(f.open())
			f.held(h)
			tokens := h.Tokens()
			for _, name := range []string{"a", "b", "c"} {
				_, stat := f.read(f.only(f.path(name)))
				if tokens[f.path(name)] != recipes.Token(stat.Czxid) || h.Token() < tokens[f.path(name)] {
					f.Errorf("%s was created in %#x; tokens %v and %v", name, stat.Czxid, tokens, h.Token())
				}
			}
			f.failIf(!h.ValidUntil().After(time.Now()), "valid until %v", h.ValidUntil())
			f.must(h.Release(f.ctx))
			f.lost(h, recipes.ErrReleased)
			f.failIf(!h.ValidUntil().IsZero(), "valid after the release until %v", h.ValidUntil())
			f.empty(f.path("a"), f.path("b"), f.path("c"))
		}},
		{"a write happens only while all are held", func(f *fixture) {
			for _, name := range []string{"a", "b", "c"} {
				h := f.holdsAll(f.open())
				f.create(f.path("x", name), "")
				f.must(h.Write(f.ctx, recipes.Set(f.path("x", name), nil, 0)))
				f.refused(h.Write(f.ctx, recipes.Set(f.path("x", name), nil, 1), recipes.Set(f.path("x", name), nil, 1)), 1, recipes.ErrBadVersion)
				f.held(h)
				f.remove(f.only(f.path(name)))
				f.forbidden(h, recipes.ErrRemoved)
				f.lost(h, recipes.ErrRemoved)
				f.is(h.Release(f.ctx), recipes.ErrRemoved)
				f.empty(f.path("a"), f.path("b"), f.path("c"))
				_, stat := f.read(f.path("x", name))
				f.failIf(stat.Version != 1, "version %d; want 1", stat.Version)
			}
		}},
		{"a session's end loses all", func(f *fixture) {
			s := f.open()
			h := f.holdsAll(s)
			f.must(s.Close(f.ctx))
			f.lost(h, recipes.ErrClosed)
			f.forbidden(h, recipes.ErrClosed)
		}},
		{"callers that name the same locks in different orders do not wait for each other for ever", func(f *fixture) {
			var callers errgroup.Group
			for i := range 4 {
				s := f.open()
				locks := []recipes.Lock{f.lock(s, f.path("a")), f.lock(s, f.path("b")), f.lock(s, f.path("c"))}
				callers.Go(func() error {
					for turn := range 3 {
						n := i + turn
						h, err := recipes.AcquireAll(f.ctx, locks[n%3], locks[(n+1)%3], locks[(n+2)%3])
						if err == nil {
							err = errors.Join(h.Write(f.ctx), h.Release(f.ctx))
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			f.must(callers.Wait())
		}},
		{"a caller that gives up gives back what it has", func(f *fixture) {
			other := f.acquire(f.open(), f.path("b"))
			ctx, cancel := context.WithCancel(f.ctx)
			defer cancel()
			s := f.open()
			waits := start(f, func() (recipes.Holds, error) { return f.acquireAll(ctx, s) })
			f.awaitChildren(f.path("b"), 2)
			f.only(f.path("a"))
			cancel()
			err := waits.failure(f)
			f.is(err, context.Canceled)
			f.awaitChildren(f.path("a"), 0)
			f.awaitChildren(f.path("b"), 1)
			f.held(other)
		}},
		{"the loss of a hold ends the wait for the next", func(f *fixture) {
			f.acquire(f.open(), f.path("b"))
			s := f.open()
			waits := start(f, func() (recipes.Holds, error) { return f.acquireAll(f.ctx, s) })
			f.awaitChildren(f.path("b"), 2)
			f.remove(f.only(f.path("a")))
			f.is(waits.failure(f), recipes.ErrRemoved, recipes.ErrNotHeld)
			f.awaitChildren(f.path("b"), 1)
			f.must(s.Err())
		}},
		{"a lock that is refused gives back the others", func(f *fixture) {
			f.permit(f.open(), f.path("c"), 3)
			_, err := f.acquireAll(f.ctx, f.open())
			f.is(err, recipes.ErrMismatch)
			f.empty(f.path("a"), f.path("b"))
		}},
		{"no lock, one path twice and two sessions are ErrInvalid, and nothing is sent", func(f *fixture) {
			s, other := f.open(), f.open()
			f.sendsNothing(s, func() {
				for _, locks := range [][]recipes.Lock{
					{},
					{f.lock(s, f.path("a")), f.lock(s, f.path("a"))},
					{f.lock(s, f.path("a")), f.lock(other, f.path("b"))},
				} {
					f.is(errOf(recipes.AcquireAll(f.ctx, locks...)), recipes.ErrInvalid)
				}
			})
		}},
		{"Held is refused for a grant that is lost, and for one of another session", func(f *fixture) {
			s := f.open()
			own, member := f.acquire(s, f.path("a")), f.join(s, f.path("g"), "m", "")
			create := recipes.Create(f.path("x"), nil)
			f.is(own.Write(f.ctx, recipes.Held(f.acquire(f.open(), f.path("b"))), create), recipes.ErrInvalid)
			f.must(member.Update(f.ctx, []byte("data")))
			f.must(own.Write(f.ctx, recipes.Held(member), recipes.Held(own)))
			f.must(member.Write(f.ctx, recipes.Held(own)))
			f.remove(member.Znode())
			f.unheld(own.Write(f.ctx, create, recipes.Held(member)), 1)
			f.held(own)
			f.failIf(f.exists(f.path("x")), "the write was committed")
			f.lost(member, recipes.ErrRemoved)
			unwatched := f.acquire(s, f.path("c"))
			f.remove(unwatched.Znode())
			f.unheld(own.Write(f.ctx, recipes.Held(unwatched)), 0)
			f.must(own.Release(f.ctx))
		}},
		{"Held of a set checks every hold of it", func(f *fixture) {
			s := f.open()
			own := f.acquire(s, f.path("own"))
			for i, name := range []string{"a", "b", "c"} {
				set := f.holdsAll(s)
				f.must(own.Write(f.ctx, recipes.Create(f.path(name, "x"), nil), recipes.Held(set), recipes.Held(own)))
				f.must(set.Write(f.ctx, recipes.Held(own), recipes.Held(set)))
				f.is(f.acquire(f.open(), f.path("another", name)).Write(f.ctx, recipes.Held(set)), recipes.ErrInvalid)
				f.remove(f.only(f.path(name), "x"))
				f.unheld(own.Write(f.ctx, recipes.Held(own), recipes.Held(set), recipes.Create(f.path("y"), nil)), 1)
				f.failIf(f.exists(f.path("y")), "the write was committed without hold %d", i)
				f.held(own)
				f.lost(set, recipes.ErrRemoved)
				f.is(set.Release(f.ctx), recipes.ErrRemoved)
				f.remove(f.path(name, "x"))
			}
		}},
	}
}

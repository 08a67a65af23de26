package recipestest

import (
	"context"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// pending is a call that runs in another goroutine.
type pending[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func start[T any](f *fixture, call func() (T, error)) *pending[T] {
	p := &pending[T]{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value, p.err = call()
	}()
	f.Cleanup(func() {
		select {
		case <-p.done:
		case <-time.After(patience):
			f.Error("a call has not returned at the end of its test")
		}
	})
	return p
}

// startErr starts a call that returns only an error.
func startErr(f *fixture, call func() error) *pending[struct{}] {
	return start(f, func() (struct{}, error) { return struct{}{}, call() })
}

// result waits for the return of the call.
func (p *pending[T]) result(f *fixture) (T, error) {
	f.Helper()
	f.await(p.done, "the return of the call")
	return p.value, p.err
}

// must returns the value of the call, which must succeed.
func (p *pending[T]) must(f *fixture) T {
	f.Helper()
	return must.Get(p.result(f))(f)
}

// failure returns the error of the call.
func (p *pending[T]) failure(f *fixture) error {
	f.Helper()
	return errOf(p.result(f))
}

// get makes a call with the test's context. The call must succeed.
func get[T any](f *fixture, call func(context.Context) (T, error)) T {
	f.Helper()
	return must.Get(call(f.ctx))(f)
}

// errOf returns the error of a call whose value does not matter.
func errOf[T any](_ T, err error) error { return err }

// blocked checks that the call has not returned.
func (p *pending[T]) blocked(f *fixture) {
	f.Helper()
	select {
	case <-p.done:
		f.Fatalf("the call returned (%v, %v); want it to wait", p.value, p.err)
	default:
	}
}

// waitingCall is the call of a contender that has joined a wait queue and has no grant yet.
type waitingCall[G any] struct {
	*pending[G]
	place  recipes.Place
	cancel context.CancelFunc
}

// waits starts a call that joins a wait queue, and returns when it has joined. enter opens the
// recipe with joined in its configuration, and returns the call.
func waits[G any](f *fixture, enter func(joined func(recipes.Place)) func(context.Context) (G, error)) *waitingCall[G] {
	f.Helper()
	joined := make(chan recipes.Place, 1)
	call := enter(func(p recipes.Place) { joined <- p })
	ctx, cancel := context.WithCancel(f.ctx)
	w := &waitingCall[G]{cancel: cancel}
	w.pending = start(f, func() (G, error) { return call(ctx) })
	f.Cleanup(cancel) // runs before start's clean-up, which waits for the call
	select {
	case w.place = <-joined:
	case <-w.done:
		select {
		case w.place = <-joined: // the grant came before this goroutine ran
		default:
			f.Fatalf("the call returned (%v, %v) before it reported its place", w.value, w.err)
		}
	case <-f.ctx.Done():
		f.Fatal("the place in the wait queue: nothing until the end of the test")
	}
	return w
}

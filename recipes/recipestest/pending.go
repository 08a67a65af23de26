package recipestest

import "time"

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
			f.Error("a call goes on after its test has ended")
		}
	})
	return p
}

// startErr is start for a call that returns nothing but an error.
func startErr(f *fixture, call func() error) *pending[struct{}] {
	return start(f, func() (struct{}, error) { return struct{}{}, call() })
}

func (p *pending[T]) result(f *fixture) (T, error) {
	f.Helper()
	f.await(p.done, "the return of the call")
	return p.value, p.err
}

func (p *pending[T]) value1(f *fixture) T {
	f.Helper()
	v, err := p.result(f)
	f.must(err)
	return v
}

// blocked checks that the call has not returned.
func (p *pending[T]) blocked(f *fixture) {
	f.Helper()
	select {
	case <-p.done:
		f.Fatalf("the call returned (%v, %v); want it to wait", p.value, p.err)
	default:
	}
}

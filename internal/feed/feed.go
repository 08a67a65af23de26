// Package feed shares the latest value of something with any number of readers. It is
// for streams in which only the newest value matters, such as a session's state or an
// election's leader. Readers may miss values in between, and never the last one.
package feed

import (
	"context"
	"sync"
)

// Feed holds a value that changes. All methods may be called from several
// goroutines; Set and Close never wait for a reader.
type Feed[T any] struct {
	mu      sync.Mutex
	value   T
	closed  bool
	changed chan struct{} // closed and replaced at each change
	notify  []func(T)
}

// New returns a Feed that holds value.
func New[T any](value T) *Feed[T] {
	return &Feed[T]{value: value, changed: make(chan struct{})}
}

// Get returns the latest value, a channel that is closed at the next change,
// and whether the value is the last one.
func (f *Feed[T]) Get() (value T, changed <-chan struct{}, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value, f.changed, f.closed
}

// Set replaces the value. After Close it does nothing.
func (f *Feed[T]) Set(value T) { f.set(value, false) }

// Close makes value the last one. Only the first Close counts.
func (f *Feed[T]) Close(value T) { f.set(value, true) }

func (f *Feed[T]) set(value T, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.value, f.closed = value, last
	close(f.changed)
	f.changed = make(chan struct{})
	for _, notify := range f.notify {
		notify(value)
	}
}

// Notify calls notify with the present value, and then with each change, one after the
// other. The call must return soon, and not use the feed. Unlike Watch it misses no
// value and takes no goroutine.
func (f *Feed[T]) Notify(notify func(T)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = append(f.notify, notify)
	notify(f.value)
}

// Watch returns a channel that gives the present value and then each change. Of changes
// that come faster than they are received, it gives the latest only. It is closed after
// the last value has been received, or when ctx ends. The goroutine that sends to it
// ends then too.
func (f *Feed[T]) Watch(ctx context.Context) <-chan T {
	out := make(chan T)
	go func() {
		defer close(out)
		for {
			value, changed, last := f.Get()
			select {
			case out <- value:
			case <-ctx.Done():
				return
			case <-changed:
				continue
			}
			if last {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

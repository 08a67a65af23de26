// Package feed shares a changing value with any number of readers. It is for streams in
// which only the latest value matters, such as a session's state or an election's leader. A
// reader may miss values in between, but never the last one.
package feed

import (
	"context"
	"sync"
)

// Feed holds a value that changes. All methods may be called from several goroutines. Set
// and Close never wait for a reader.
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

// Notify calls notify with the current value, and then with each later value, one at a
// time. notify must return soon, and must not use the feed. Unlike Watch, Notify misses no
// value and needs no goroutine.
func (f *Feed[T]) Notify(notify func(T)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = append(f.notify, notify)
	notify(f.value)
}

// Watch returns a channel of the current value and the later values. If values change
// faster than they are received, it delivers only the latest. The channel is closed after
// the last value was received, or when ctx ends. Then the goroutine that sends to it ends
// too.
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

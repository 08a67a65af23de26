package simulation

import (
	"context"
	"sync"
	"time"
)

// watched is a watch of the operator, and the latest value that the operator has received.
type watched[T any] struct {
	world *World
	end   context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	latest T
}

// watch starts a watch, which runs until stop.
func watch[T any](w *World, begin func(context.Context) (<-chan T, error)) *watched[T] {
	ctx, cancel := context.WithCancel(context.Background())
	v := &watched[T]{world: w, end: cancel, ended: make(chan struct{})}
	go v.follow(ctx, begin)
	return v
}

func (v *watched[T]) follow(ctx context.Context, begin func(context.Context) (<-chan T, error)) {
	defer close(v.ended)
	values, err := begin(ctx)
	if err != nil {
		v.world.fail("operator", "%v", err)
		return
	}
	for value := range values {
		v.mu.Lock()
		v.latest = value
		v.mu.Unlock()
	}
	if ctx.Err() == nil {
		v.world.fail("operator", "the watch has ended: %v", v.world.outside.Err())
	}
}

func (v *watched[T]) shows() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.latest
}

// await waits until the condition is true, for at most d. It reports whether the condition became
// true.
func (v *watched[T]) await(ctx context.Context, d time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(d)
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		_ = sleep(ctx, 50*time.Millisecond)
	}
	return true
}

func (v *watched[T]) stop() {
	v.end()
	<-v.ended
}

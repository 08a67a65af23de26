package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Removal is the deletion of a znode by its owner, who may ask for it from several
// goroutines. One deletion runs at a time. Once the znode is known to be gone (no
// error, or ErrNotHeld) the result stays the same. If the server has refused the
// deletion, the next call tries again: nobody else would.
type Removal struct {
	mu   sync.Mutex
	last *removalRun // nil if there was none, or the last one was refused
}

// removalRun is one try.
type removalRun struct {
	done chan struct{} // closed when err is set
	err  error
}

// Run waits for the deletion that is under way, or for one that it starts, and
// returns its result. One that was under way may have been refused before this call, so
// then Run looks for a later one. If ctx ends first, it returns ctx's error, which begins
// with what, and the deletion goes on. start must have settle called once, also then.
func (r *Removal) Run(ctx context.Context, what string, start func(settle func(error))) error {
	for later := false; ; later = true {
		t, first := r.begin(start)
		select {
		case <-t.done:
		case <-ctx.Done():
			if !Happened(t.done) { // else the answer is worth more
				return fmt.Errorf("%s: %w", what, ctx.Err())
			}
		}
		if first || later {
			return t.err
		}
	}
}

// Start is Run for those who do not need the result.
func (r *Removal) Start(start func(settle func(error))) { r.begin(start) }

// begin returns the try that counts. If it is a new one it has started it.
func (r *Removal) begin(start func(settle func(error))) (t *removalRun, first bool) {
	r.mu.Lock()
	t = r.last
	if first = t == nil; first {
		t = &removalRun{done: make(chan struct{})}
		r.last = t
	}
	r.mu.Unlock()
	if first {
		start(func(err error) { r.settle(t, err) })
	}
	return t, first
}

// settle ends a try.
func (r *Removal) settle(t *removalRun, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !errors.Is(err, recipes.ErrNotHeld) {
		r.last = nil
	}
	t.err = err
	close(t.done)
}

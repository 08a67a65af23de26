package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Removal is the deletion of a znode by its owner, which several goroutines may request. One
// deletion runs at a time. Once the znode is known to be deleted (nil or ErrNotHeld), the
// result stays the same. If the server refuses the deletion, the next call tries again, because
// no other client deletes the znode.
type Removal struct {
	mu   sync.Mutex
	last *removalRun // nil if there was no attempt, or the last one was refused
}

// removalRun is one attempt.
type removalRun struct {
	done chan struct{} // closed when err is set
	err  error
}

// Run waits for the deletion in progress, or starts one, and returns its result. If another caller
// had started the deletion and it is refused, Run retries once, because the refusal may be older
// than this call. If ctx is done first, Run returns ctx's error after the text what, and the
// deletion continues. start must call settle once, even then.
func (r *Removal) Run(ctx context.Context, what string, start func(settle func(error))) error {
	for later := false; ; later = true {
		t, first := r.begin(start)
		select {
		case <-t.done:
		case <-ctx.Done():
			if !Happened(t.done) { // otherwise the result counts
				return fmt.Errorf("%s: %w", what, ctx.Err())
			}
		}
		if first || later {
			return t.err
		}
	}
}

// Start is Run for callers that do not need the result.
func (r *Removal) Start(start func(settle func(error))) { r.begin(start) }

// begin returns the current attempt, and whether it has started it.
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

// settle ends an attempt.
func (r *Removal) settle(t *removalRun, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && !errors.Is(err, recipes.ErrNotHeld) {
		r.last = nil
	}
	t.err = err
	close(t.done)
}

package load

import (
	"context"
	"sync/atomic"
)

// rest counts the contenders that have come to rest: they wait in line or have
// left for good. Only one at a time, the holder, may wait for it.
type rest struct {
	n     atomic.Int64
	moved chan struct{} // of capacity one: n has changed since it was looked at
}

func newRest() *rest { return &rest{moved: make(chan struct{}, 1)} }

func (r *rest) add(delta int64) {
	r.n.Add(delta)
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// await waits until n contenders are at rest.
func (r *rest) await(ctx context.Context, n int64) error {
	for r.n.Load() != n {
		select {
		case <-r.moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

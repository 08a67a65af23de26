package session

import (
	"context"
	"sync"
)

// names lets one call at a time create a node of a given path.
type names struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the path is free again
}

func (n *names) take(ctx context.Context, path string) (release func(), err error) {
	for {
		n.mu.Lock()
		taken, ok := n.busy[path]
		if !ok {
			if n.busy == nil {
				n.busy = make(map[string]chan struct{})
			}
			free := make(chan struct{})
			n.busy[path] = free
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				delete(n.busy, path)
				close(free)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

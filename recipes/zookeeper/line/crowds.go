package line

import "sync"

// Crowds remembers at which paths a session last had to wait. It is only about
// what is cheaper to ask first. A nil one remembers nothing.
type Crowds struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

func (c *Crowds) at(path string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.paths[path]
	return ok
}

func (c *Crowds) note(path string, crowded bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !crowded:
		delete(c.paths, path)
	case c.paths == nil:
		c.paths = map[string]struct{}{path: {}}
	default:
		c.paths[path] = struct{}{}
	}
}

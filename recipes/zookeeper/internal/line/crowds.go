package line

import "sync"

// Crowds remembers at which paths a session last had to wait. It is only about
// what is cheaper to ask first, so when there are too many it forgets them: a
// session that lives long may lock each of its paths once. A nil one remembers
// nothing.
type Crowds struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

const maxCrowds = 4096

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
	case c.paths == nil, len(c.paths) >= maxCrowds:
		c.paths = map[string]struct{}{path: {}}
	default:
		c.paths[path] = struct{}{}
	}
}

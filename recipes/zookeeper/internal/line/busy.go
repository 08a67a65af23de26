package line

import "sync"

// Busy remembers at which paths a session last had to wait. That only tells what is
// cheaper to ask first. So it forgets them when they are too many, for a session
// that lives long may lock each of its paths once. A nil one remembers nothing.
type Busy struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

const maxBusy = 4096

func (b *Busy) at(path string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.paths[path]
	return ok
}

func (b *Busy) note(path string, busy bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !busy:
		delete(b.paths, path)
	case b.paths == nil, len(b.paths) >= maxBusy:
		b.paths = map[string]struct{}{path: {}}
	default:
		b.paths[path] = struct{}{}
	}
}

package line

import (
	gopath "path"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Busy remembers at which paths a session last had to wait, and the last number checked for
// third-party contenders. That only saves requests. So it forgets all paths when there are too
// many: a session that lives long may lock each of its paths once. A nil Busy remembers
// nothing.
type Busy struct {
	mu     sync.Mutex
	paths  map[string]struct{}
	listed map[string]listing
}

// listing identifies the last child that was created before a listing. parent is the czxid of
// the path, whose numbers begin again when it is created again.
type listing struct {
	parent int64
	last   int32
}

func listingOf(parent session.Stat) listing {
	return listing{parent.Czxid, session.LastNumber(parent)}
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

// kindAt identifies the wait queue for Busy. A contender that is third-party for a lock may not
// be for an election.
func (l *Line) kindAt() string { return gopath.Join(l.Path, l.Markers[0]) }

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

// clean records that a listing, with these names and this record of the path, had no
// third-party contender. If the path has the directories of Curator's semaphore, it is never
// clean: the record does not show changes below them.
func (b *Busy) clean(line string, names []string, parent session.Stat) {
	if b == nil || slices.Contains(names, CuratorLeases) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listed == nil || len(b.listed) >= maxBusy {
		b.listed = make(map[string]listing)
	}
	b.listed[line] = listingOf(parent)
}

// unchanged reports whether no child was created since a listing without a third-party
// contender.
func (b *Busy) unchanged(line string, parent session.Stat) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	seen, ok := b.listed[line]
	return ok && seen == listingOf(parent)
}

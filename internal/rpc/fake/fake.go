// Package fake is a small world of locks and elections in memory that keeps the
// contract of package recipes, so that what lies between an application and the
// recipes can be tested without ZooKeeper, and disturbed at will. It is for
// tests only.
package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// World is what sessions share. Make one with New.
type World struct {
	// Timeout of the sessions that are opened; 0 is what they ask for.
	Timeout time.Duration
	// OnClose, if not nil, is called when a session closes itself.
	OnClose func(*Session)
	// OpenErr, if not nil, fails Open.
	OpenErr func() error

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	next     int64
	sessions []*Session
	nodes    []*node
	data     map[string][]byte
	opened   []recipes.SessionConfig
}

// node is a contender's znode.
type node struct {
	recipes.Contender
	path    string // of the line
	owner   *Session
	acked   bool
	ack     []byte
	removed error // why it is gone
	gone    chan struct{}
}

// New returns an empty world.
func New() *World {
	return &World{changed: make(chan struct{}), data: make(map[string][]byte)}
}

// Open is a recipes.Opener.
func (w *World) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.OpenErr != nil {
		if err := w.OpenErr(); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	s := newSession(w, w.next, cmpOr(w.Timeout, cfg.SessionTimeout))
	w.sessions = append(w.sessions, s)
	w.opened = append(w.opened, cfg)
	return s, nil
}

func cmpOr(a, b time.Duration) time.Duration {
	if a != 0 {
		return a
	}
	return b
}

// Configs returns the configurations of all sessions opened so far.
func (w *World) Configs() []recipes.SessionConfig {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.opened)
}

// Session returns the n-th session that was opened, counting from 0.
func (w *World) Session(n int) *Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions[n]
}

// Sessions returns all sessions that were opened.
func (w *World) Sessions() []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sessions)
}

// Line returns who stands in line at path.
func (w *World) Line(path string) []recipes.Contender {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line(path)
}

func (w *World) line(path string) []recipes.Contender {
	out := []recipes.Contender{}
	for _, n := range w.nodes {
		if n.path == path {
			c := n.Contender
			c.Holds = len(out) == 0
			out = append(out, c)
		}
	}
	return out
}

// Wait returns when cond, called with the world at rest, is true, or ctx ends.
func (w *World) Wait(ctx context.Context, cond func() bool) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Remove deletes a contender's znode by another hand.
func (w *World) Remove(znode string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.Znode == znode {
			w.remove(n, recipes.ErrRemoved)
			return
		}
	}
}

func (w *World) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *World) join(s *Session, path, marker string, data []byte) *node {
	w.next++
	n := &node{path: path, owner: s, gone: make(chan struct{}), Contender: recipes.Contender{
		Znode:    fmt.Sprintf("%s/_c_guid-%s%010d", path, marker, w.next),
		Sequence: int32(w.next), Token: recipes.Token(w.next), SessionID: s.id,
		Since: time.Now(), Data: data, Kind: recipes.KindLock,
	}}
	if marker == "n_" {
		n.Kind = recipes.KindElection
	}
	w.nodes = append(w.nodes, n)
	w.change()
	return n
}

func (w *World) remove(n *node, why error) {
	if n.removed != nil {
		return
	}
	n.removed = why
	w.nodes = slices.DeleteFunc(w.nodes, func(m *node) bool { return m == n })
	close(n.gone)
	w.change()
}

// ahead returns how many stand before n.
func (w *World) ahead(n *node) int {
	i := 0
	for _, m := range w.nodes {
		if m == n {
			return i
		}
		if m.path == n.path {
			i++
		}
	}
	return i
}

// first returns the first node in line at path, or nil.
func (w *World) first(path string) *node {
	for _, n := range w.nodes {
		if n.path == path {
			return n
		}
	}
	return nil
}

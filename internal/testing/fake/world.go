// Package fake is the contract without a server: locks and elections in memory, first
// come, first granted, with the statistics that ZooKeeper's recipes would show. It is
// for tests of what lies between an application and the recipes: the plugin, the host,
// the benchmark, broken locks included.
//
// It is not a model of ZooKeeper: nothing expires or waits on a network. Tests end
// sessions, delete znodes and break locks through its methods. Recipes other than
// Lock and Election do not exist in it, and panic.
package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// World is what sessions share. The zero World is empty, sound and ready for use. Its
// fields are set before it is used.
type World struct {
	// Timeout of the sessions that are opened; 0 is what they ask for.
	Timeout time.Duration
	// OnClose, if not nil, is called when a session closes itself.
	OnClose func(*Session)
	// OpenErr, if not nil, fails Open.
	OpenErr func() error
	// Defect is how the locks are broken; see also Break.
	Defect Defect

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change; nil if nobody waits for it
	zxid     int64         // of the latest change
	sessions []*Session
	configs  []recipes.SessionConfig
	lines    map[string][]*contender
	data     map[string][]byte
}

// Defect is a way to be broken.
type Defect int

const (
	// Sound is not broken.
	Sound Defect = iota
	// TwoHolders grants the second in line together with the first.
	TwoHolders
	// ShrinkingTokens gives every grant a smaller token than the one before.
	ShrinkingTokens
)

// Open is a recipes.Opener.
func (w *World) Open(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.OpenErr != nil {
		if err := w.OpenErr(); err != nil {
			return nil, err
		}
	}
	timeout := w.Timeout
	if timeout == 0 {
		timeout = cfg.SessionTimeout
	}
	if timeout == 0 {
		timeout = recipes.DefaultSessionTimeout
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.zxid++
	s := newSession(w, w.zxid, timeout)
	w.sessions, w.configs = append(w.sessions, s), append(w.configs, cfg)
	return s, nil
}

// Break gives the world a defect from now on.
func (w *World) Break(d Defect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Defect = d
}

// Configs returns the configurations of all sessions opened so far.
func (w *World) Configs() []recipes.SessionConfig {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.configs)
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
	line := make([]recipes.Contender, len(w.lines[path]))
	for i, c := range w.lines[path] {
		line[i] = c.Contender
	}
	return line
}

// Remove deletes a contender's znode, as another client does.
func (w *World) Remove(znode string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		for _, c := range line {
			if c.Znode == znode {
				w.leave(recipes.ErrRemoved, c)
				return
			}
		}
	}
}

// Wait returns when cond, which may call methods of the world, is true, or ctx ends.
func (w *World) Wait(ctx context.Context, cond func() bool) error {
	for {
		changed := w.nextChange()
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

func (w *World) nextChange() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// change tells those who wait for a change. The caller holds mu.
func (w *World) change() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

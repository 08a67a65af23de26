// Package fake implements the contract without a server: locks and elections in memory, first
// in, first out. It counts the requests and events that the ZooKeeper recipes would cost. It is for
// tests of the layers between an application and the recipes: the plugin, the host and the
// benchmark.
//
// It is not a model of ZooKeeper: no session expires, and there is no network. Tests end sessions,
// delete znodes and break locks by its methods. It has only Lock and a part of Election; the other
// recipes panic.
package fake

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contender is a contender that is or was in a wait queue. The world's mu guards it.
type contender struct {
	recipes.Contender
	path     string // of the wait queue
	owner    *Session
	strategy recipes.Strategy
	granted  chan struct{} // closed at the grant
	gone     chan struct{} // closed when removed is set
	removed  error         // why it was removed
}

// markers come before the sequence number in the names of contenders.
var markers = map[recipes.Kind]string{recipes.KindLock: "lock-", recipes.KindElection: "n_"}

// join adds a contender to the wait queue and returns its position. It counts one write and one
// listing, and if another contender is ahead, a read that sets a watch.
func (w *World) join(p point, data []byte) (*contender, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := p.session.Err(); err != nil {
		return nil, 0, err
	}
	if w.lines == nil {
		w.lines = make(map[string][]*contender)
	}
	w.zxid++
	c := &contender{
		path: p.path, owner: p.session, strategy: p.strategy, granted: make(chan struct{}), gone: make(chan struct{}),
		Contender: recipes.Contender{
			Kind: p.kind, Znode: fmt.Sprintf("%s/_c_guid-%s%010d", p.path, markers[p.kind], w.zxid),
			Sequence: int32(w.zxid), Token: recipes.Token(w.zxid), SessionID: p.session.id, Since: time.Now(), Data: data,
		},
	}
	if w.Defect == ShrinkingTokens {
		c.Token = 1<<40 - c.Token
	}
	position := len(w.lines[p.path])
	w.lines[p.path] = append(w.lines[p.path], c)
	p.session.count("create", true, 0)
	p.session.countListing(position + 1)
	if position > 0 {
		p.session.countRead()
	}
	w.grant(p.path)
	w.change()
	return c, position, nil
}

// leave removes contenders from their wait queues. It grants only when all are removed, so that
// none of them is granted when another one leaves. The caller holds mu.
func (w *World) leave(why error, leaving ...*contender) {
	for _, c := range leaving {
		w.remove(c, why)
	}
	for _, c := range leaving {
		w.grant(c.path)
	}
	w.change()
}

// remove removes a contender from its wait queue, unless it was removed before. It grants nothing.
func (w *World) remove(c *contender, why error) {
	if c.removed != nil {
		return
	}
	i := slices.Index(w.lines[c.path], c)
	line := slices.Delete(w.lines[c.path], i, i+1)
	w.lines[c.path] = line
	c.removed = why
	close(c.gone)
	c.owner.count("delete", true, 0)
	w.countWakes(line, i)
}

// countWakes counts what the end of the contender at position i costs the contenders in line, which
// no longer has it. Handoff counts as Predecessor.
func (w *World) countWakes(line []*contender, i int) {
	for j, other := range line {
		watched := i == j
		if other.strategy == recipes.Herd {
			watched = i == 0
		}
		if !watched {
			continue
		}
		other.owner.countEvent()
		other.owner.countListing(len(line))
		if j > 0 {
			other.owner.countRead()
		}
	}
}

// grant grants the path to the first contender; with the defect TwoHolders, to the first two.
func (w *World) grant(path string) {
	holders := 1
	if w.Defect == TwoHolders {
		holders = 2
	}
	for _, c := range w.lines[path][:min(holders, len(w.lines[path]))] {
		if !c.Holds {
			c.Holds = true
			close(c.granted)
		}
	}
}

// World is the state that sessions share. The zero World is empty and sound. Set its fields before
// the first use.
type World struct {
	// Timeout is the timeout of new sessions; 0 means the one in their configuration.
	Timeout time.Duration
	// OnClose, if not nil, is called by Close of a session that is not lost.
	OnClose func(*Session)
	// OpenErr, if not nil, is called by Open, which returns its error.
	OpenErr func() error
	// Defect is the defect of the locks; see also Break.
	Defect Defect

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change; nil if none is awaited
	zxid     int64         // of the latest change
	sessions []*Session
	configs  []recipes.SessionConfig
	lines    map[string][]*contender
	data     map[string][]byte
}

// Defect is a defect of the locks.
type Defect int

const (
	// Sound is no defect.
	Sound Defect = iota
	// TwoHolders grants the second contender together with the first.
	TwoHolders
	// ShrinkingTokens gives each grant a smaller token than the previous one.
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
		timeout = 10 * time.Second
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.zxid++
	s := newSession(w, w.zxid, timeout)
	w.sessions, w.configs = append(w.sessions, s), append(w.configs, cfg)
	return s, nil
}

// Break sets the defect.
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

// Session returns the session that was opened as number n, counting from 0.
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

// Line returns the contenders of a path, in order.
func (w *World) Line(path string) []recipes.Contender {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := make([]recipes.Contender, len(w.lines[path]))
	for i, c := range w.lines[path] {
		line[i] = c.Contender
	}
	return line
}

// Remove deletes a contender's znode, as another client can.
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

// Wait returns when cond is true, or with ctx's error when ctx ends. It calls cond after each
// change. cond may call methods of the world.
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

// change wakes the goroutines that wait for a change. The caller holds mu.
func (w *World) change() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

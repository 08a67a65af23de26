package fake

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contender is a contender that is or was in a wait queue. The world's mu guards it.
type contender struct {
	recipes.Contender
	path         string // of the wait queue
	owner        *Session
	strategy     recipes.Strategy
	acknowledged bool
	ack          []byte
	granted      chan struct{} // closed at the grant
	gone         chan struct{} // closed when removed is set
	removed      error         // why it was removed
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

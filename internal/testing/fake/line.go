package fake

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// contender stands, or stood, in a line. The world's mu guards it.
type contender struct {
	recipes.Contender
	path         string // of the line
	owner        *Session
	strategy     recipes.Strategy
	acknowledged bool
	ack          []byte
	granted      chan struct{} // closed when it holds
	gone         chan struct{} // closed when removed is set
	removed      error         // why it is gone
}

// markers come before the sequence number in the names of contenders.
var markers = map[recipes.Kind]string{recipes.KindLock: "lock-", recipes.KindElection: "n_"}

// join puts a contender at the end of the line and returns its position. It costs one
// write and one read of the whole line, and another read to watch if somebody is ahead.
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

// leave takes contenders out of their lines and then grants: none of them is granted
// because another one of them has left. The caller holds mu.
func (w *World) leave(why error, leaving ...*contender) {
	for _, c := range leaving {
		w.remove(c, why)
	}
	for _, c := range leaving {
		w.grant(c.path)
	}
	w.change()
}

// remove takes a contender out of its line, if it is there, and wakes those that its
// strategy has watching.
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
	w.wake(line, i)
}

// wake counts what a departure from position i costs those who are still in line.
func (w *World) wake(line []*contender, i int) {
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

// grant gives the first in line its turn.
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

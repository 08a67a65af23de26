package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// cohorts are those of a session that are in use, by path.
type cohorts struct {
	mu sync.Mutex // guards what is in the cohorts too
	at map[string]*cohort
}

// cohort is a session's contenders for the lock of a path. They queue here and
// stand in ZooKeeper's line once. At any time nobody of them stands there, or
// there is an enrolment, or a turn.
//
// An enrolment belongs to all who wait, not to the one who began it, so that the
// place in line is not given up with his patience; it runs beside them, and ends
// when nobody waits. The rest is done by whoever has the turn, in his own
// goroutine: a handover wakes the next one, and that is all.
type cohort struct {
	all     *cohorts
	session *session.Session
	path    string
	limit   int // of handovers within one turn

	members   int // who have joined, and neither left nor got a hold that has ended
	waiting   []*mate
	enrolment *enrolment // on the way to a turn
	turn      *turn
}

// enrolment is a contender in ZooKeeper's line.
type enrolment struct {
	cancel context.CancelFunc // takes it out of the line
	znode  string             // "" until its place is known
}

// refuse is nil if a contender with that limit may use the path. all.mu is held.
func (cs *cohorts) refuse(path string, limit int) error {
	if c := cs.at[path]; c != nil && c.limit != limit {
		return fmt.Errorf("%w: Cohort is %d; others of this session use the path with %d", recipes.ErrMismatch, limit, c.limit)
	}
	return nil
}

// alone refuses a contender without a cohort where there is one.
func (cs *cohorts) alone(path string) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.refuse(path, 0)
}

// join adds a contender to the path's cohort. A try finds it empty or fails.
func (cs *cohorts) join(l *line.Line, cfg recipes.LockConfig, try bool) (*cohort, *mate, error) {
	m := &mate{line: l, data: cfg.Data, try: try, place: make(chan recipes.Place, 1)}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if err := cs.refuse(l.Path, cfg.Cohort); err != nil {
		return nil, nil, err
	}
	c := cs.at[l.Path]
	switch {
	case c == nil:
		c = &cohort{all: cs, session: l.Session, path: l.Path, limit: cfg.Cohort}
		if cs.at == nil {
			cs.at = make(map[string]*cohort)
		}
		cs.at[l.Path] = c
	case try:
		return nil, nil, fmt.Errorf("%w: another contender of this session", recipes.ErrContended)
	}
	c.members++
	c.enqueue(m, len(c.waiting))
	c.proceed()
	return c, m, nil
}

// enqueue has m wait at that position. all.mu is held.
func (c *cohort) enqueue(m *mate, position int) {
	m.turn, m.turned = nil, make(chan struct{})
	c.waiting = slices.Insert(c.waiting, position, m)
	switch {
	case c.enrolment != nil && c.enrolment.znode != "":
		m.tell(recipes.Place{Znode: c.enrolment.znode, Position: recipes.UnknownPosition})
	case c.turn != nil && !c.turn.giving:
		m.tell(recipes.Place{Znode: c.turn.grant.Znode(), Position: recipes.UnknownPosition})
		c.turn.watch() // who waits for a hold has to learn of its loss
	}
}

// proceed does what is next to be done. all.mu is held.
func (c *cohort) proceed() {
	switch t := c.turn; {
	case c.enrolment != nil, t != nil && (t.taken || t.giving):
		// It comes here again when that ends.
	case t != nil && len(c.waiting) > 0 && t.given <= c.limit && t.grant.Err() == nil:
		m := c.waiting[0]
		c.waiting = slices.Delete(c.waiting, 0, 1)
		t.given++
		t.taken = true
		m.turn = t
		close(m.turned)
		if len(c.waiting) > 0 {
			t.watch()
		}
	case t != nil:
		c.giveBack()
	case len(c.waiting) > 0:
		c.enrol()
	case c.members == 0:
		delete(c.all.at, c.path)
	}
}

// enrol has the first of those who wait stand in ZooKeeper's line for all.
// all.mu is held.
func (c *cohort) enrol() {
	ctx, cancel := context.WithCancel(context.Background())
	first := c.waiting[0]
	e := &enrolment{cancel: cancel}
	c.enrolment = e
	started := c.session.Background(func(context.Context) {
		defer cancel()
		grant, err := first.line.Enter(ctx, line.Request{Data: first.data, Try: first.try, Joined: func(p recipes.Place) { c.placed(e, p) }})
		c.enrolled(ctx, grant, err)
	})
	if !started {
		cancel()
		c.enrolment = nil
		c.failAll(c.session.Err())
	}
}

// placed tells those who wait where the enrolment stands.
func (c *cohort) placed(e *enrolment, p recipes.Place) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	e.znode = p.Znode
	for i, m := range c.waiting {
		if i > 0 {
			p.Position = recipes.UnknownPosition
		}
		m.tell(p)
	}
}

// enrolled ends the enrolment. One that fails is the failure of whoever is first
// then; the next one enrols anew.
func (c *cohort) enrolled(ctx context.Context, grant *line.Grant, err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.enrolment = nil
	lost := c.session.Err()
	switch {
	case err == nil:
		c.turn = &turn{cohort: c, grant: grant, gone: make(chan struct{})}
	case lost != nil:
		c.failAll(lost)
	case ctx.Err() != nil:
		// Nobody wanted it any more. Who waits now has come since.
	default:
		c.fail(c.waiting[0], err)
	}
	c.proceed()
}

// fail answers somebody who waits. all.mu is held.
func (c *cohort) fail(m *mate, err error) {
	i := slices.Index(c.waiting, m)
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.members--
	m.err = err
	close(m.turned)
}

func (c *cohort) failAll(err error) {
	for len(c.waiting) > 0 {
		c.fail(c.waiting[0], err)
	}
}

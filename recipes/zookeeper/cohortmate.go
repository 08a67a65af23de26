package zookeeper

import (
	"context"
	"errors"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// mate is a contender of a cohort.
type mate struct {
	line  *line.Line
	data  []byte
	try   bool
	told  bool               // its place
	place chan recipes.Place // gets it

	turned chan struct{} // closed when one of these is set
	turn   *turn         // it has the turn
	err    error         // it has left
}

// tell gives its place to somebody who waits, once.
func (m *mate) tell(p recipes.Place) {
	if !m.told {
		m.told = true
		m.place <- p
	}
}

// enterCohort is lock.enter with a cohort.
func (l *lock) enterCohort(ctx context.Context, try bool) (recipes.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, m, err := l.cohorts.join(l.line, l.cfg, try)
	if err != nil {
		return nil, err
	}
	for {
		if err := c.await(ctx, m, l.cfg.Joined); err != nil {
			return nil, err
		}
		token, err := m.turn.stamp(ctx)
		if err == nil {
			if hold := m.turn.held(token); hold != nil {
				return hold, nil
			}
			err = m.turn.grant.Err()
		}
		lost := c.session.Err()
		if errors.Is(err, recipes.ErrNotHeld) && lost == nil && ctx.Err() == nil && !try {
			c.again(m)
			continue
		}
		c.abandon(m)
		switch {
		case lost != nil:
			return nil, lost
		case errors.Is(err, recipes.ErrNotHeld) && ctx.Err() != nil:
			return nil, ctx.Err()
		}
		return nil, err
	}
}

// await waits for the turn.
func (c *cohort) await(ctx context.Context, m *mate, joined func(recipes.Place)) error {
	tell := func(p recipes.Place) {
		if joined != nil {
			joined(p)
		}
	}
	for {
		var err error
		select {
		case p := <-m.place:
			tell(p)
			continue
		case <-m.turned:
		case <-c.session.Done():
			err = c.session.Err()
		case <-ctx.Done():
			err = c.session.Interrupted("waiting for "+c.path, ctx)
		}
		if err != nil && c.leave(m) {
			return err
		}
		// Who was answered meanwhile has the turn, and has to pass it on.
		<-m.turned
		select {
		case p := <-m.place:
			tell(p)
		default:
		}
		return m.err
	}
}

// leave takes out somebody who waits no longer. It reports false if he has been
// answered already.
func (c *cohort) leave(m *mate) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	i := slices.Index(c.waiting, m)
	if i < 0 {
		return false
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.members--
	if c.enrolment != nil && (len(c.waiting) == 0 || m.try) {
		c.enrolment.cancel()
	}
	c.proceed()
	return true
}

// again has somebody whose turn was lost before it was a hold wait in front.
func (c *cohort) again(m *mate) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.turn == m.turn {
		c.turn = nil
	}
	c.enqueue(m, 0)
	c.proceed()
}

// abandon ends a contender who has the turn and made no hold of it.
func (c *cohort) abandon(m *mate) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.members--
	if c.turn == m.turn {
		m.turn.taken = false
		m.turn.given--
	}
	c.proceed()
}

package rwlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// claimant is a contender of a priority lock on its way to being granted.
type claimant struct {
	lock    *priorityLock
	me      spot   // waiting
	data    []byte // of the own znode, and
	version int32  // its version
	claimed bool   // a claim was sent
	try     bool
	joined  func(recipes.Place)
	asked   map[string]bool // holders
	armed   line.Watches
}

// wait waits until there is nobody in the way, and claims.
//
// Why it wakes up: it watches one of those in the way, and it cannot be granted
// before that one has gone, or has stopped being ahead. Going, and beginning to
// hold, deletes the znode that is watched. An order once given changes in one
// way only: a contender becomes the heir; that one's own znode is written, which
// it watches too. (An heir stays the heir until its waiting znode is gone.) Who
// joins, wherever in the order, takes nobody out of the way.
func (c *claimant) wait(ctx context.Context) (*line.Grant, error) {
	l := c.lock
	for {
		disconnected, err := l.session.Connected(ctx)
		if err != nil {
			return nil, err
		}
		r, all, err := l.look(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil, c.removed()
		}
		if err != nil {
			return nil, err
		}
		position := -1
		for i, s := range all {
			if s.name == c.me.name {
				position = i
			}
		}
		if position < 0 {
			return nil, c.removed()
		}
		blockers := inTheWay(all[:position], c.me.mode)
		switch {
		case len(blockers) == 0:
			c.tell(position)
			grant, err := c.claim(ctx, r)
			if !errors.Is(err, znode.ErrReadAgain) {
				return grant, err
			}
			continue
		case c.try:
			c.tell(position)
			return nil, fmt.Errorf("%w: %s", recipes.ErrContended, l.at(blockers[0].name))
		}
		ready, err := c.arm(ctx, blockers, disconnected)
		if err != nil {
			return nil, err
		}
		if !ready {
			continue
		}
		if l.cfg.Ask {
			if err := c.ask(ctx, blockers); err != nil {
				return nil, err
			}
		}
		c.tell(position)
		if err := c.armed.Wait(ctx, l.session, "waiting for "+l.path, disconnected); err != nil {
			return nil, err
		}
	}
}

func (c *claimant) removed() error {
	return fmt.Errorf("waiting in line: %w: %s", recipes.ErrRemoved, c.lock.at(c.me.name))
}

func (c *claimant) tell(position int) {
	if c.joined != nil {
		c.joined(recipes.Place{Znode: c.lock.at(c.me.name), Position: position})
		c.joined = nil
	}
}

// arm watches one of those in the way, and the own znode, and reports whether
// that is enough to wait on: not if one of them has gone, nor if the own znode
// was not watched before the look that found who is in the way. The contender
// may have become the heir in between, and the one in the way be behind it, who
// waits for it. So the first wait looks twice, and whoever never waits does not
// pay for the watch. (The history test found the contenders all asleep.)
func (c *claimant) arm(ctx context.Context, blockers []spot, connection <-chan struct{}) (bool, error) {
	s, target := c.lock.session, blockers[len(blockers)-1]
	if c.lock.strategy == recipes.Herd {
		target = blockers[0]
	}
	c.armed.Keep([]line.Entry{{Name: target.name}, {Name: c.me.name}}, connection)
	node, fresh, err := c.armed.Arm(ctx, s, c.lock.path, c.me.name)
	switch {
	case err == nil && fresh:
		c.data, c.version = node.Data, node.Stat.Version
		return false, nil
	case err == nil:
		_, _, err = c.armed.Arm(ctx, s, c.lock.path, target.name)
	}
	if errors.Is(err, recipes.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// ask asks holders of lower priority to give way, each once.
func (c *claimant) ask(ctx context.Context, blockers []spot) error {
	for _, b := range blockers {
		if !b.holds || b.priority <= c.me.priority || c.asked[b.name] {
			continue
		}
		_, err := ask(ctx, c.lock.session, c.lock.at(b.name), false)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) && !errors.Is(err, recipes.ErrNotRevocable) {
			return fmt.Errorf("ask %s to give way: %w", b.name, err)
		}
		if c.asked == nil {
			c.asked = make(map[string]bool)
		}
		c.asked[b.name] = true
	}
	return nil
}

// leave deletes what there is of the contender. The order matters: a claim that
// is still under way fails when the waiting znode is gone, so what it has made,
// if anything, is there to be deleted then.
func (c *claimant) leave() <-chan error {
	s := c.lock.session
	if !c.claimed {
		return s.Delete(c.lock.at(c.me.name))
	}
	done := make(chan error, 1)
	if !s.Background(func(context.Context) {
		<-s.Delete(c.lock.at(c.me.name))
		done <- <-s.Delete(c.lock.at(c.me.heldName()))
	}) {
		done <- s.Err()
	}
	return done
}

package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// claim replaces the waiting znode by a holding one, if no writer has claimed
// since r was read, and if nobody has written to the waiting one, whose data it
// takes along. Readers only check the register, so that those who are let in
// together do not refuse each other.
func (c *claimant) claim(ctx context.Context, r register) (*line.Grant, error) {
	held := c.lock.at(c.me.heldName())
	var t session.Txn
	switch {
	case r.heir == c.me.name:
		r.heir = ""
		t.Set(c.lock.path, r.data(), r.version)
	case c.me.mode == recipes.Writing:
		t.Set(c.lock.path, r.data(), r.version)
	default:
		t.Check(c.lock.path, r.version)
	}
	t.Delete(c.lock.at(c.me.name), c.version)
	t.Create(held, c.data, true)
	c.claimed = true
	err := c.lock.session.Commit(ctx, t)
	var refused *session.TxnError
	switch {
	case err == nil:
		return c.grant(ctx, held)
	case errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, recipes.ErrBadVersion):
		return nil, c.reread(ctx)
	case errors.As(err, &refused) && refused.Index <= 1 && errors.Is(err, recipes.ErrNoNode):
		return nil, c.removed() // or the path, and all that waited with it
	case znode.TryAgain(ctx, c.lock.session, err):
		return c.recall(ctx, held, errors.Is(err, recipes.ErrUnknownOutcome))
	}
	return nil, znode.GivenUp(ctx, c.lock.session, "claim "+c.lock.path, err) // leave undoes it
}

// reread reads what somebody has written to the own znode.
func (c *claimant) reread(ctx context.Context) error {
	node, err := c.lock.session.Get(ctx, c.lock.at(c.me.name))
	if errors.Is(err, recipes.ErrNoNode) {
		return c.removed()
	}
	if err != nil {
		return err
	}
	c.data, c.version = node.Data, node.Stat.Version
	return znode.ErrReadAgain
}

// recall finds out, where nobody knows, whether a claim was carried out. After
// the sync it cannot be any more.
func (c *claimant) recall(ctx context.Context, held string, unknown bool) (*line.Grant, error) {
	if !unknown {
		return nil, znode.ErrReadAgain
	}
	if err := c.lock.session.Sync(ctx, c.lock.path); err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return nil, err
	}
	_, err := c.lock.session.Stat(ctx, held)
	switch {
	case err == nil:
		return c.grant(ctx, held)
	case errors.Is(err, recipes.ErrNoNode):
		return nil, znode.ErrReadAgain
	}
	return nil, err
}

// grant reads the holding znode, as line.grant does the first in line's.
func (c *claimant) grant(ctx context.Context, held string) (*line.Grant, error) {
	s := c.lock.session
	stat, err := s.Stat(ctx, held)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, c.taken()
	}
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != s.ID() {
		return nil, fmt.Errorf("claimed: %w: %s belongs to session %#x", recipes.ErrRemoved, held, stat.EphemeralOwner)
	}
	if c.me.mode == recipes.Writing {
		if err := c.alone(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	var heeds func([]byte) bool
	if c.lock.cfg.Revocable {
		heeds = asked
	}
	return line.NewRevocable(s, held, recipes.Token(stat.Czxid), heeds), nil
}

// taken: somebody has deleted the holding znode. Another writer may have claimed
// since.
func (c *claimant) taken() error {
	return fmt.Errorf("claimed: %w: %s", recipes.ErrRemoved, c.lock.at(c.me.heldName()))
}

// alone waits, after a writer's claim, for readers who have claimed between its
// last look and its claim. They were let in first, and nobody can come after
// them: whoever reads the register after the claim finds the writer among those
// who hold, and who has read it before is refused.
func (c *claimant) alone(ctx context.Context) error {
	l := c.lock
	for {
		disconnected, err := l.session.Connected(ctx)
		if err != nil {
			return err
		}
		names, err := l.session.Children(ctx, l.path)
		if errors.Is(err, recipes.ErrNoNode) || err == nil && !slices.Contains(names, c.me.heldName()) {
			return c.taken()
		}
		if err != nil {
			return err
		}
		var others []spot
		for _, s := range spots(names) {
			if s.holds && s.name != c.me.heldName() {
				others = append(others, s)
			}
		}
		if len(others) == 0 {
			return nil
		}
		if c.try {
			return fmt.Errorf("%w: %s", recipes.ErrContended, l.at(others[0].name))
		}
		if l.cfg.Ask {
			if err := c.ask(ctx, others); err != nil {
				return err
			}
		}
		c.armed.Keep([]line.Entry{{Name: others[0].name}}, disconnected)
		_, _, err = c.armed.Arm(ctx, l.session, l.path, others[0].name)
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.armed.Wait(ctx, l.session, "waiting for "+l.path, disconnected); err != nil {
			return err
		}
	}
}

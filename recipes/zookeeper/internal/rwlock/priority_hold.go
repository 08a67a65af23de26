package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// priorityHold is a *line.Hold of the holding znode.
type priorityHold struct {
	*line.Hold
	lock *priorityLock
	mode recipes.Mode
}

func (h *priorityHold) Mode() recipes.Mode { return h.mode }

func (h *priorityHold) HandOff(ctx context.Context, successor string) error {
	c, ok := h.lock.contender(successor)
	if !ok || c.holds {
		return fmt.Errorf("handoff of %s: %w: %q is not a waiter of this lock", h.lock.Path(), recipes.ErrInvalid, successor)
	}
	err := h.Yield(func() error { return h.handOff(ctx, c) })
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		err = h.Err()
	}
	if err != nil {
		return fmt.Errorf("handoff of %s: %w", h.lock.Path(), err)
	}
	return nil
}

// handOff names the successor and deletes the holder's znode in one transaction. The
// transaction also writes the data of the successor's znode, unchanged. That wakes the
// successor, which may be watching a contender that is behind it from now on.
func (h *priorityHold) handOff(ctx context.Context, successor contender) error {
	l := h.lock
	const ofHold = 0 // the operation on the holder's znode
	for {
		if err := h.Err(); err != nil {
			return err
		}
		state, _, err := l.read(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed() // together with the path
		}
		if err != nil {
			return err
		}
		if state.successor != "" {
			return fmt.Errorf("%w: another holder has named %s", recipes.ErrContended, state.successor)
		}
		node, err := l.Session.Get(ctx, l.Child(successor.name))
		if err != nil {
			return err
		}
		state.successor = successor.name
		var t session.Txn
		t.Delete(h.Znode(), recipes.AnyVersion)
		t.Set(l.Path(), state.data(), state.version)
		t.Set(l.Child(successor.name), node.Data, node.Stat.Version)
		err = l.Session.Commit(ctx, t)
		switch {
		case err == nil:
			return nil
		case znode.RefusedOp(err) == ofHold && errors.Is(err, recipes.ErrNoNode):
			return h.Removed()
		case errors.Is(err, recipes.ErrBadVersion):
			continue
		case l.Session.Unsettled(ctx, err):
			if done, err := h.handedOff(ctx); done || err != nil {
				return err
			}
			continue
		}
		return l.Session.Because(ctx, err)
	}
}

// handedOff finds out whether a handoff of unknown outcome was committed: the holder's
// znode is gone then. If another client has deleted that znode at the same moment, the
// successor may not have been named. The two cases cannot be distinguished.
func (h *priorityHold) handedOff(ctx context.Context) (bool, error) {
	s := h.lock.Session
	if err := s.Sync(ctx, h.lock.Path()); err != nil {
		return false, znode.UnknownOutcome(err)
	}
	_, err := s.Stat(ctx, h.Znode())
	if errors.Is(err, recipes.ErrNoNode) {
		return true, nil
	}
	return false, znode.UnknownOutcome(err)
}

// contender parses the path of a contender's znode.
func (l *priorityLock) contender(path string) (contender, bool) {
	c, ok := parseName(gopath.Base(path))
	return c, ok && gopath.Dir(path) == l.Path()
}

// znodesOf is revoker.znodes. A waiter has a holding znode after its claim. The claim
// copies a request to give way, and is refused if a request comes in between.
func (l *priorityLock) znodesOf(path string) ([]string, error) {
	c, ok := l.contender(path)
	if !ok {
		return nil, fmt.Errorf("revoke: %w: %q is not a contender of the priority lock %s", recipes.ErrInvalid, path, l.Path())
	}
	if c.holds {
		return []string{path}, nil
	}
	return []string{path, l.Child(c.holdingName())}, nil
}

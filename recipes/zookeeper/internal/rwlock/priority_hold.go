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
		return fmt.Errorf("hand-off of %s: %w: %q is not a waiter of this lock", h.lock.path, recipes.ErrInvalid, successor)
	}
	err := h.Yield(func() error { return h.handOff(ctx, c) })
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		err = h.Err()
	}
	if err != nil {
		return fmt.Errorf("hand-off of %s: %w", h.lock.path, err)
	}
	return nil
}

// handOff names the successor and deletes the holder's znode in one transaction. It
// also writes the successor's znode, unchanged, to wake it: it may watch a contender
// that is behind it from now on.
func (h *priorityHold) handOff(ctx context.Context, successor contender) error {
	l := h.lock
	const ofHold = 0 // the operation that is refused when the holder's znode has gone
	for {
		if err := h.Err(); err != nil {
			return err
		}
		state, _, err := l.read(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed() // with the path
		}
		if err != nil {
			return err
		}
		if state.successor != "" {
			return fmt.Errorf("%w: another holder has named %s", recipes.ErrContended, state.successor)
		}
		node, err := l.session.Get(ctx, l.at(successor.name))
		if err != nil {
			return err
		}
		state.successor = successor.name
		var t session.Txn
		t.Delete(h.Znode(), recipes.AnyVersion)
		t.Set(l.path, state.data(), state.version)
		t.Set(l.at(successor.name), node.Data, node.Stat.Version)
		err = l.session.Commit(ctx, t)
		switch {
		case err == nil:
			return nil
		case znode.RefusedOp(err) == ofHold && errors.Is(err, recipes.ErrNoNode):
			return h.Removed()
		case errors.Is(err, recipes.ErrBadVersion):
			continue
		case l.session.Unsettled(ctx, err):
			if done, err := h.handedOff(ctx); done || err != nil {
				return err
			}
			continue
		}
		return l.session.Because(ctx, err)
	}
}

// handedOff finds out whether a hand-off of unknown outcome was carried out: the
// holder's znode is gone then. (If another client has deleted that znode in the same
// moment, the successor may not have been named; that cannot be distinguished.)
func (h *priorityHold) handedOff(ctx context.Context) (bool, error) {
	s := h.lock.session
	if err := s.Sync(ctx, h.lock.path); err != nil {
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
	return c, ok && gopath.Dir(path) == l.path
}

// znodesOf returns the paths of the znodes that a contender has, one after the
// other.
func (l *priorityLock) znodesOf(path string) ([]string, error) {
	c, ok := l.contender(path)
	if !ok {
		return nil, fmt.Errorf("revoke: %w: %q is not a contender of the priority lock %s", recipes.ErrInvalid, path, l.path)
	}
	if c.holds {
		return []string{path}, nil
	}
	return []string{path, l.at(c.holdingName())}, nil
}

// Revoke asks a contender to give way, where it waits or where it holds: a claim
// takes a request along, and is refused if one comes in between.
func (l *priorityLock) Revoke(ctx context.Context, path string) error {
	paths, err := l.znodesOf(path)
	if err != nil {
		return err
	}
	for _, p := range paths {
		_, err = revoke(ctx, l.session, p, false)
		if !errors.Is(err, recipes.ErrNoNode) {
			break
		}
	}
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return fmt.Errorf("revoke %s: %w", path, err)
	}
	return nil
}

// RevokeForced deletes a contender's znode after its grace, in the line or as a
// holder's.
func (l *priorityLock) RevokeForced(ctx context.Context, path string) error {
	paths, err := l.znodesOf(path)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := revokeForced(ctx, l.session, p); err != nil {
			return fmt.Errorf("revoke %s: %w", path, err)
		}
	}
	return nil
}

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

// priorityHold is a *line.Grant of the holding znode.
type priorityHold struct {
	*line.Grant
	lock *priorityLock
	mode recipes.Mode
}

func (h *priorityHold) Mode() recipes.Mode { return h.mode }

func (h *priorityHold) HandOff(ctx context.Context, heir string) error {
	s, ok := h.lock.contender(heir)
	if !ok || s.holds {
		return fmt.Errorf("hand-off of %s: %w: %q does not wait for it", h.lock.path, recipes.ErrInvalid, heir)
	}
	err := h.Yield(func() error { return h.handOff(ctx, s) })
	if errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrUnknownOutcome) {
		err = h.Err()
	}
	if err != nil {
		return fmt.Errorf("hand-off of %s: %w", h.lock.path, err)
	}
	return nil
}

// handOff names the heir and deletes the own znode in one transaction. It also
// writes to the heir's znode, unchanged: the heir may watch somebody who is
// behind it from now on.
func (h *priorityHold) handOff(ctx context.Context, heir spot) error {
	l := h.lock
	for {
		if err := h.Err(); err != nil {
			return err
		}
		r, _, err := l.look(ctx)
		if errors.Is(err, recipes.ErrNoNode) {
			return h.Removed() // with the path
		}
		if err != nil {
			return err
		}
		if r.heir != "" {
			return fmt.Errorf("%w: %s is the heir", recipes.ErrContended, r.heir)
		}
		node, err := l.session.Get(ctx, l.at(heir.name))
		if err != nil {
			return err
		}
		r.heir = heir.name
		var t session.Txn
		t.Delete(h.Znode(), recipes.AnyVersion)
		t.Set(l.path, r.data(), r.version)
		t.Set(l.at(heir.name), node.Data, node.Stat.Version)
		err = l.session.Commit(ctx, t)
		var refused *session.TxnError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, recipes.ErrNoNode):
			return h.Removed()
		case errors.As(err, &refused) && errors.Is(err, recipes.ErrBadVersion):
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

// handedOff finds out, where nobody knows, whether the hand-off was carried out:
// the own znode is gone then. (If somebody has broken the lock in the same
// moment, the heir may not have been named; nobody can tell.)
func (h *priorityHold) handedOff(ctx context.Context) (bool, error) {
	s := h.lock.session
	if err := s.Sync(ctx, h.lock.path); err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return false, znode.UnknownOutcome(err)
	}
	_, err := s.Stat(ctx, h.Znode())
	if errors.Is(err, recipes.ErrNoNode) {
		return true, nil
	}
	return false, znode.UnknownOutcome(err)
}

// contender parses the path of a contender's znode.
func (l *priorityLock) contender(znode string) (spot, bool) {
	s, ok := parseSpot(gopath.Base(znode))
	return s, ok && gopath.Dir(znode) == l.path
}

// lives are the znodes that a contender has, one after the other.
func (l *priorityLock) lives(znode string) ([]string, error) {
	s, ok := l.contender(znode)
	if !ok {
		return nil, fmt.Errorf("revoke: %w: %q is no contender of the priority lock %s", recipes.ErrInvalid, znode, l.path)
	}
	if s.holds {
		return []string{znode}, nil
	}
	return []string{znode, l.at(s.heldName())}, nil
}

// Revoke asks a contender to give way, where it waits or where it holds: a claim
// takes a request along, and is refused if one comes on the way.
func (l *priorityLock) Revoke(ctx context.Context, znode string) error {
	lives, err := l.lives(znode)
	if err != nil {
		return err
	}
	for _, life := range lives {
		_, err = ask(ctx, l.session, life, false)
		if !errors.Is(err, recipes.ErrNoNode) {
			break
		}
	}
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return fmt.Errorf("revoke %s: %w", znode, err)
	}
	return nil
}

// RevokeForced takes a contender's place away, in the line or as a holder.
func (l *priorityLock) RevokeForced(ctx context.Context, znode string) error {
	lives, err := l.lives(znode)
	if err != nil {
		return err
	}
	for _, life := range lives {
		if err := force(ctx, l.session, life); err != nil {
			return fmt.Errorf("revoke %s: %w", znode, err)
		}
	}
	return nil
}

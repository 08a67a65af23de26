package rwlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Revoke asks a contender to give way.
func (l *sharedLock) Revoke(ctx context.Context, path string) error {
	if err := l.checkContender(path); err != nil {
		return err
	}
	if _, err := revoke(ctx, l.line.Session, path, false); err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return fmt.Errorf("revoke %s: %w", path, err)
	}
	return nil
}

// RevokeForced asks a contender to give way, and deletes its znode after its grace.
func (l *sharedLock) RevokeForced(ctx context.Context, path string) error {
	if err := l.checkContender(path); err != nil {
		return err
	}
	if err := revokeForced(ctx, l.line.Session, path); err != nil {
		return fmt.Errorf("revoke %s: %w", path, err)
	}
	return nil
}

func (l *sharedLock) checkContender(path string) error {
	if !l.line.Has(path) {
		return fmt.Errorf("revoke: %w: %q is not a contender of the shared lock %s", recipes.ErrInvalid, path, l.line.Path)
	}
	return nil
}

// revoke writes "unlock" in front of what the znode holds, and returns what it
// holds then.
func revoke(ctx context.Context, s *session.Session, path string, forced bool) (nodeData, error) {
	for {
		node, err := s.Get(ctx, path)
		if err != nil {
			return nodeData{}, err
		}
		d := decode(node.Data)
		switch {
		case !d.revocable:
			return nodeData{}, recipes.ErrNotRevocable
		case forced && d.grace == 0:
			return nodeData{}, fmt.Errorf("%w by force: it gives no grace", recipes.ErrNotRevocable)
		case d.revoked:
			return d, nil
		}
		d.revoked = true
		err = znode.SetData(ctx, s, path, d.encode(), node.Stat.Version)
		switch {
		case err == nil:
			return d, nil
		case znode.TryAgain(ctx, s, err):
			continue
		}
		return nodeData{}, znode.GivenUp(ctx, s, "ask "+path, err)
	}
}

// revokeForced asks, waits for the grace to end, and deletes the znode. The timer is
// the only one that a recipe sets: the text's "after some length of time".
func revokeForced(ctx context.Context, s *session.Session, path string) error {
	d, err := revoke(ctx, s, path, true)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	over := make(chan struct{})
	grace := time.AfterFunc(d.grace, func() { close(over) })
	defer grace.Stop()
	gone, err := awaitGone(ctx, s, path, over)
	if gone || err != nil {
		return err
	}
	return deleteRevoked(ctx, s, path)
}

// awaitGone waits until the znode is gone or the grace is over. It reports whether
// the znode is gone.
func awaitGone(ctx context.Context, s *session.Session, path string, over <-chan struct{}) (bool, error) {
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return false, err
		}
		_, watch, err := s.GetW(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		err = s.Wait(ctx, "waiting for the end of its grace", watch.Fired(), disconnected, over)
		if err != nil || session.Happened(over) {
			return false, err
		}
	}
}

// deleteRevoked deletes a znode that was asked to give way, if its data still says
// so: the request may have been taken back.
func deleteRevoked(ctx context.Context, s *session.Session, path string) error {
	for {
		node, err := s.Get(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if !isRevoked(node.Data) {
			return fmt.Errorf("%w: the request was taken back", recipes.ErrBadVersion)
		}
		var t session.Txn
		t.Delete(path, node.Stat.Version)
		err = s.Commit(ctx, t)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNoNode):
			return nil
		case znode.TryAgain(ctx, s, err):
			continue
		}
		return znode.GivenUp(ctx, s, "delete "+path, err)
	}
}

package rwlock

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/znode"
)

// Revoke asks a contender to give way.
func (l *sharedLock) Revoke(ctx context.Context, path string) error {
	if err := l.contenderOf(path); err != nil {
		return err
	}
	if _, err := ask(ctx, l.line.Session, path, false); err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return fmt.Errorf("revoke %s: %w", path, err)
	}
	return nil
}

// RevokeForced asks a contender to give way and takes its place away in the end.
func (l *sharedLock) RevokeForced(ctx context.Context, path string) error {
	if err := l.contenderOf(path); err != nil {
		return err
	}
	if err := force(ctx, l.line.Session, path); err != nil {
		return fmt.Errorf("revoke %s: %w", path, err)
	}
	return nil
}

func (l *sharedLock) contenderOf(path string) error {
	if gopath.Dir(path) != l.line.Path || !isKind(path, readMarker) && !isKind(path, writeMarker) {
		return fmt.Errorf("revoke: %w: %q is no contender of the shared lock %s", recipes.ErrInvalid, path, l.line.Path)
	}
	return nil
}

// ask writes "unlock" in front of what the znode holds, and returns it as it is
// then.
func ask(ctx context.Context, s *session.Session, path string, forced bool) (envelope, error) {
	for {
		node, err := s.Get(ctx, path)
		if err != nil {
			return envelope{}, err
		}
		e := decode(node.Data)
		switch {
		case !e.revocable:
			return envelope{}, recipes.ErrNotRevocable
		case forced && e.grace == 0:
			return envelope{}, fmt.Errorf("%w by force: it gives no grace", recipes.ErrNotRevocable)
		case e.asked:
			return e, nil
		}
		e.asked = true
		err = znode.SetData(ctx, s, path, e.encode(), node.Stat.Version)
		switch {
		case err == nil:
			return e, nil
		case znode.TryAgain(ctx, s, err):
			continue
		}
		return envelope{}, znode.GivenUp(ctx, s, "ask "+path, err)
	}
}

// force asks, waits for the grace to pass, and deletes the znode. The timer is
// the only one in a recipe: the text's "after some length of time".
func force(ctx context.Context, s *session.Session, path string) error {
	e, err := ask(ctx, s, path, true)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	over := make(chan struct{})
	grace := time.AfterFunc(e.grace, func() { close(over) })
	defer grace.Stop()
	gone, err := awaitGone(ctx, s, path, over)
	if gone || err != nil {
		return err
	}
	return take(ctx, s, path)
}

// awaitGone waits until the znode is gone, which it reports, or the grace over.
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

// take deletes a znode that was asked for. The version that it was read with is
// checked: a request that somebody has taken back stands no longer.
func take(ctx context.Context, s *session.Session, path string) error {
	for {
		node, err := s.Get(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if !decode(node.Data).asked {
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

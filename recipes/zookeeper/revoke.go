package zookeeper

import (
	"context"
	"errors"
	"fmt"
	gopath "path"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// Revoke asks a contender to give way.
func (l *sharedLock) Revoke(ctx context.Context, znode string) error {
	if err := l.contenderOf(znode); err != nil {
		return err
	}
	if _, err := ask(ctx, l.line.Session, znode, false); err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return fmt.Errorf("revoke %s: %w", znode, err)
	}
	return nil
}

// RevokeForced asks a contender to give way and takes its place away in the end.
func (l *sharedLock) RevokeForced(ctx context.Context, znode string) error {
	if err := l.contenderOf(znode); err != nil {
		return err
	}
	if err := force(ctx, l.line.Session, znode); err != nil {
		return fmt.Errorf("revoke %s: %w", znode, err)
	}
	return nil
}

func (l *sharedLock) contenderOf(znode string) error {
	if gopath.Dir(znode) != l.line.Path || !isKind(znode, readMarker) && !isKind(znode, writeMarker) {
		return fmt.Errorf("revoke: %w: %q is no contender of the shared lock %s", recipes.ErrInvalid, znode, l.line.Path)
	}
	return nil
}

// ask writes "unlock" in front of what the znode holds, and returns it as it is
// then.
func ask(ctx context.Context, s *session.Session, znode string, forced bool) (envelope, error) {
	for {
		node, err := s.Get(ctx, znode)
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
		err = setData(ctx, s, znode, e.encode(), node.Stat.Version)
		switch {
		case err == nil:
			return e, nil
		case retry(ctx, s, err):
			continue
		}
		return envelope{}, settled(ctx, s, "ask "+znode, err)
	}
}

// force asks, waits for the grace to pass, and deletes the znode. The timer is
// the only one in a recipe: the text's "after some length of time".
func force(ctx context.Context, s *session.Session, znode string) error {
	e, err := ask(ctx, s, znode, true)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	over := make(chan struct{})
	grace := time.AfterFunc(e.grace, func() { close(over) })
	defer grace.Stop()
	gone, err := awaitGone(ctx, s, znode, over)
	if gone || err != nil {
		return err
	}
	return take(ctx, s, znode)
}

// awaitGone waits until the znode is gone, which it reports, or the grace over.
func awaitGone(ctx context.Context, s *session.Session, znode string, over <-chan struct{}) (bool, error) {
	for {
		disconnected, err := s.Connected(ctx)
		if err != nil {
			return false, err
		}
		_, watch, err := s.GetW(ctx, znode)
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
func take(ctx context.Context, s *session.Session, znode string) error {
	for {
		node, err := s.Get(ctx, znode)
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
		t.Delete(znode, node.Stat.Version)
		err = s.Commit(ctx, t)
		switch {
		case err == nil, errors.Is(err, recipes.ErrNoNode):
			return nil
		case retry(ctx, s, err):
			continue
		}
		return settled(ctx, s, "delete "+znode, err)
	}
}

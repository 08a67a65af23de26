package session

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// GetW is Get with a watch that fires when the znode is changed or deleted. If the znode does
// not exist no watch is set, so none remains for a creation that never comes.
func (s *Session) GetW(ctx context.Context, path string) (Node, *Watch, error) {
	return readWatched(ctx, s, "read", path, watchKey{path: s.full(path)}, conn.Get, conn.Reply.Node, nil)
}

// ExistsW reports whether a znode exists, with a watch that fires when it is created, changed
// or deleted. If the znode does not exist, the watch lasts until ctx is done: then it fires, if
// it has not, and is removed.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *Watch, error) {
	key := watchKey{path: s.full(path)}
	return readWatched(ctx, s, "read", path, key, conn.Exists,
		func(r conn.Reply) (bool, error) {
			err := r.Err()
			if errors.Is(err, recipes.ErrNoNode) {
				return false, nil // the server watches for its creation
			}
			return err == nil, err
		},
		func(w *Watch, exists bool, err error) {
			if err != nil || exists {
				s.watches.leave(key, w, false)
			} else {
				s.unwatchAfter(ctx, key, w)
			}
		})
}

// ChildrenW is Children with a watch that fires when a child is created or deleted, or the
// znode is deleted.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *Watch, error) {
	l, w, err := s.childrenW(ctx, "list", path)
	return l.Names, w, err
}

// DeletionW returns the record of a znode that cannot have children, with a watch that fires
// when the znode is deleted. It watches the children, so it does not fire when the data change.
func (s *Session) DeletionW(ctx context.Context, path string) (Stat, *Watch, error) {
	l, w, err := s.childrenW(ctx, "read", path)
	return l.Stat, w, err
}

func (s *Session) childrenW(ctx context.Context, what, path string) (conn.Listing, *Watch, error) {
	return readWatched(ctx, s, what, path, watchKey{path: s.full(path), children: true}, conn.Children, conn.Reply.Listing, nil)
}

// readWatched reads with a watch: the one that is already set, or a new one. It joins the watch
// before the read: the event of a change after the read may arrive before the reply is handled.
// joined, if not nil, ends the wait that join has begun. It runs after the read, even if the
// caller has returned.
func readWatched[T any](ctx context.Context, s *Session, what, path string, key watchKey,
	request func(path string, arm bool) conn.Request, read func(conn.Reply) (T, error), joined func(*Watch, T, error)) (T, *Watch, error) {
	waits := 0
	if joined != nil {
		waits = 1
	}
	type watched struct {
		value T
		watch *Watch
	}
	got, err := readWith(ctx, s, what, path, func() (watched, error) {
		w, arm, connection := s.watches.join(key, waits)
		value, err := conn.Ask(s.wire.Current(), request(key.path, arm), read)
		if arm {
			s.watches.settle(key, w, err == nil, connection)
		}
		if joined != nil {
			joined(w, value, err)
		}
		return watched{value, w}, err
	})
	return got.value, got.watch, err
}

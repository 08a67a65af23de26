package session

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// GetW is Get with a watch that fires when the node is changed or deleted. There
// is no watch if there is no node, so none is left behind for a creation that
// never comes.
func (s *Session) GetW(ctx context.Context, path string) (Node, *Watch, error) {
	return readWatched(ctx, s, "read", path, watchKey{path: s.full(path)},
		func(r conn.Sender, arm bool) (Node, error) { return r.Get(s.full(path), arm) })
}

// ExistsW reports whether a znode exists, with a watch that fires when that
// changes, or the data does. If the znode does not exist, the watch is good for as long as
// ctx: then it fires, at the latest, and is removed.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *Watch, error) {
	key := watchKey{path: s.full(path)}
	return readJoined(ctx, s, "look at", path, key, s.watches.joinWaiting,
		func(r conn.Sender, arm bool) (bool, error) {
			_, err := r.Exists(s.full(path), arm)
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

// ChildrenW is Children with a watch that fires when a child comes or goes, or
// the node is deleted.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *Watch, error) {
	l, w, err := s.childrenW(ctx, "list", path)
	return l.Names, w, err
}

// DeletionW returns the record of a znode that cannot have children, with a watch
// that fires when it is deleted. It does not fire when the data is changed, for
// what it watches is the children that never come.
func (s *Session) DeletionW(ctx context.Context, path string) (Stat, *Watch, error) {
	l, w, err := s.childrenW(ctx, "look at", path)
	return l.Stat, w, err
}

func (s *Session) childrenW(ctx context.Context, what, path string) (conn.Listing, *Watch, error) {
	return readWatched(ctx, s, what, path, watchKey{path: s.full(path), children: true},
		func(r conn.Sender, arm bool) (conn.Listing, error) { return r.Children(s.full(path), arm) })
}

// readWatched reads with a watch: with the one that is armed already, or else
// arming one. It is joined before the read, so that a change after the read
// cannot have been reported before.
func readWatched[T any](ctx context.Context, s *Session, what, path string, key watchKey, look func(r conn.Sender, arm bool) (T, error)) (T, *Watch, error) {
	return readJoined(ctx, s, what, path, key, s.watches.join, look, func(*Watch, T, error) {})
}

// readJoined is readWatched, with the way to join the watch, and what to do with it in the
// end: also where the caller has gone.
func readJoined[T any](ctx context.Context, s *Session, what, path string, key watchKey,
	join func(watchKey) (*Watch, bool, int), look func(r conn.Sender, arm bool) (T, error), joined func(*Watch, T, error)) (T, *Watch, error) {
	type watched struct {
		value T
		watch *Watch
	}
	got, err := readWith(ctx, s, what, path, func(r conn.Sender) (watched, error) {
		w, arm, connection := join(key)
		value, err := look(r, arm)
		if arm {
			s.watches.settle(key, w, err == nil, connection)
		}
		joined(w, value, err)
		return watched{value, w}, err
	})
	return got.value, got.watch, err
}

package session

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// GetW is Get with a watch that fires when the node is changed or deleted. There
// is no watch if there is no node, so none is left behind for a creation that
// never comes.
func (s *Session) GetW(ctx context.Context, path string) (Node, *Watch, error) {
	return readWatched(ctx, s, "read", path, watchKey{path: s.full(path)},
		func(c *zk.Conn) (Node, error) {
			data, stat, err := c.Get(s.full(path))
			return node(data, stat, err)
		},
		func(c *zk.Conn) (Node, error) {
			data, stat, _, err := c.GetW(s.full(path))
			return node(data, stat, err)
		})
}

// ExistsW reports whether a znode exists, with a watch that fires when that
// changes, or the data does.
func (s *Session) ExistsW(ctx context.Context, path string) (bool, *Watch, error) {
	return readWatched(ctx, s, "look at", path, watchKey{path: s.full(path)},
		func(c *zk.Conn) (bool, error) {
			exists, _, err := c.Exists(s.full(path))
			return exists, err
		},
		func(c *zk.Conn) (bool, error) {
			exists, _, _, err := c.ExistsW(s.full(path))
			return exists, err
		})
}

// ChildrenW is Children with a watch that fires when a child comes or goes, or
// the node is deleted.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, *Watch, error) {
	return readWatched(ctx, s, "list", path, watchKey{path: s.full(path), children: true},
		func(c *zk.Conn) ([]string, error) {
			names, _, err := c.Children(s.full(path))
			return names, err
		},
		func(c *zk.Conn) ([]string, error) {
			names, _, _, err := c.ChildrenW(s.full(path))
			return names, err
		})
}

// DeletionW returns the record of a znode that cannot have children, with a watch
// that fires when it is deleted. It does not fire when the data is changed, for
// what it watches is the children that never come.
func (s *Session) DeletionW(ctx context.Context, path string) (Stat, *Watch, error) {
	read := func(_ []string, stat *Stat, err error) (Stat, error) {
		if err != nil {
			return Stat{}, err
		}
		return *stat, nil
	}
	return readWatched(ctx, s, "look at", path, watchKey{path: s.full(path), children: true},
		func(c *zk.Conn) (Stat, error) { return read(c.Children(s.full(path))) },
		func(c *zk.Conn) (Stat, error) {
			names, stat, _, err := c.ChildrenW(s.full(path))
			return read(names, stat, err)
		})
}

// readWatched reads with a watch: with the one that is armed already, or else
// arming one. It is joined before the read, so that a change after the read
// cannot have been reported before.
func readWatched[T any](ctx context.Context, s *Session, what, path string, key watchKey, plain, arming func(*zk.Conn) (T, error)) (T, *Watch, error) {
	type watched struct {
		value T
		watch *Watch
	}
	r, err := readWith(ctx, s, what, path, func(c *zk.Conn) (watched, error) {
		w, arm, connection := s.watches.join(key)
		if !arm {
			value, err := plain(c)
			return watched{value, w}, err
		}
		value, err := arming(c)
		s.watches.settle(key, w, err == nil, connection)
		return watched{value, w}, err
	})
	return r.value, r.watch, err
}

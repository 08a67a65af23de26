package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Predecessor reads and watches the znode at path, and watches for the deletion of the caller's
// znode, in one exchange. The watch on the caller's znode is set first. A server sends events
// in the order of the changes. So the session is notified of a deletion of the caller's znode
// before it is notified of any later change of the predecessor.
//
// The caller's znode is watched with setWatches. That costs no read: the server compares its
// record with the zxid in the request.
//
// ErrNoNode means that the predecessor does not exist. The caller's znode is then watched.
func (s *Session) Predecessor(ctx context.Context, bare BareZnode, path string) (node Node, predecessor, own *Watch, err error) {
	ownKey := watchKey{path: s.full(bare.Path), children: true}
	key := watchKey{path: s.full(path)}
	node, err = readAgain(ctx, s, "read", path, func(life context.Context) (Node, error) {
		var requests []conn.Request
		w, armOwn, connection := s.watches.join(ownKey, 0)
		own = w
		if armOwn {
			requests = append(requests, s.deletionWatch(bare))
		}
		var arm bool
		predecessor, arm, _ = s.watches.join(key, 0)
		replies, err := s.wire.Current().Exchange(life, append(requests, conn.Get(key.path, arm).Identified().Unbounded())...)
		var node Node
		if armOwn {
			if err == nil {
				err = replies[0].Err()
			}
			s.watches.settle(ownKey, own, err == nil, connection)
		}
		if err == nil {
			s.bare.watched(bare, ownKey, own)
		}
		if err == nil {
			node, err = replies[len(replies)-1].Node()
		}
		if arm {
			s.watches.settle(key, predecessor, err == nil, connection)
		}
		return node, err
	})
	return node, predecessor, own, err
}

// BareW watches for the deletion of a bare znode. If the znode is already deleted, the watch
// fires at once, even if another znode has its name.
func (s *Session) BareW(ctx context.Context, bare BareZnode) (*Watch, error) {
	key := watchKey{path: s.full(bare.Path), children: true}
	return readAgain(ctx, s, "watch", bare.Path, func(life context.Context) (*Watch, error) {
		w, arm, connection := s.watches.join(key, 0)
		if !arm {
			s.bare.watched(bare, key, w)
			return w, nil
		}
		replies, err := s.wire.Current().Exchange(life, s.deletionWatch(bare))
		if err == nil {
			err = replies[0].Err()
		}
		s.watches.settle(key, w, err == nil, connection)
		if err == nil {
			s.bare.watched(bare, key, w)
		}
		return w, err
	})
}

// deletionWatch builds the request that watches for the deletion of a bare znode. It watches
// the children: an ephemeral znode has none, so no other event fires the watch. If the znode is
// deleted, or another one has its name, the event comes at once. The connection must have the
// identity, because a server sends no events to a session that may not read the znode.
func (s *Session) deletionWatch(bare BareZnode) conn.Request {
	return conn.WatchChildren(s.full(bare.Path), bare.Stat.Czxid).Identified()
}

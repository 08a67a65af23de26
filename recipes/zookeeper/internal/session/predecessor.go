package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Predecessor reads the znode at path and watches it, and watches for the deletion
// of the caller's own znode, in one exchange. The watch on the znode is set first. A
// server gives a session its events in the order of the changes. So a deletion of the
// znode is told before whatever the predecessor's watch reports of the time after it.
//
// The znode is watched by setWatches, which costs no read: it compares the
// record that the client knows with what there is.
//
// ErrNoNode says that the predecessor is not there; the znode is watched.
func (s *Session) Predecessor(ctx context.Context, bare BareZnode, path string) (node Node, predecessor, own *Watch, err error) {
	ownKey := watchKey{path: s.full(bare.Path), children: true}
	key := watchKey{path: s.full(path)}
	node, err = readAgain(ctx, s, "read", path, func(life context.Context) (Node, error) {
		var requests []conn.Request
		w, armOwn, connection := s.watches.join(ownKey)
		own = w
		if armOwn {
			requests = append(requests, s.deletionWatch(bare))
		}
		var arm bool
		predecessor, arm, _ = s.watches.join(key)
		replies, err := s.wire.Sender().Identified().Exchange(life, append(requests, conn.Get(key.path, arm))...)
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

// BareW watches for the deletion of a bare znode. The watch has fired already, or is
// about to, if the znode is gone, also where another has its name.
func (s *Session) BareW(ctx context.Context, bare BareZnode) (*Watch, error) {
	key := watchKey{path: s.full(bare.Path), children: true}
	return readAgain(ctx, s, "watch", bare.Path, func(life context.Context) (*Watch, error) {
		w, arm, connection := s.watches.join(key)
		if !arm {
			s.bare.watched(bare, key, w)
			return w, nil
		}
		replies, err := s.wire.Sender().Identified().Exchange(life, s.deletionWatch(bare))
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

// deletionWatch sets a watch for the deletion of a bare znode: on its children, which
// never come, so that no other event can fire it. If the znode is gone, or another
// of its name is there, the server says so at once. It is for an identified
// connection: a server keeps events from whoever may not read the znode.
func (s *Session) deletionWatch(bare BareZnode) conn.Request {
	return conn.WatchChildren(s.full(bare.Path), bare.Stat.Czxid)
}

package session

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Predecessor reads the znode at path and watches it, and watches for the deletion
// of the caller's own place, in one exchange. The watch on the place is set first. A
// server gives a session its events in the order of the changes. So a deletion of the
// place is told before whatever the predecessor's watch reports of the time after it.
//
// The place is watched by setWatches, which costs no read: it compares the
// record that the client knows with what there is.
//
// ErrNoNode says that the predecessor is not there; the place is watched.
func (s *Session) Predecessor(ctx context.Context, place Place, path string) (node Node, predecessor, own *Watch, err error) {
	ownKey := watchKey{path: s.full(place.Path), children: true}
	key := watchKey{path: s.full(path)}
	node, err = readAgain(ctx, s, "read", path, func(life context.Context) (Node, error) {
		var requests []conn.Request
		w, armOwn, connection := s.watches.join(ownKey)
		own = w
		if armOwn {
			requests = append(requests, s.deletionWatch(place))
		}
		var arm bool
		predecessor, arm, _ = s.watches.join(key)
		replies, err := s.wire.Requests().Identified().Exchange(life, append(requests, conn.Get(key.path, arm))...)
		var node Node
		if armOwn {
			if err == nil {
				err = replies[0].Err()
			}
			s.watches.settle(ownKey, own, err == nil, connection)
		}
		if err == nil {
			s.places.watched(place, ownKey, own)
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

// PlaceW watches for the deletion of a place. The watch has fired already, or is
// about to, if the place is gone, also where another has its name.
func (s *Session) PlaceW(ctx context.Context, place Place) (*Watch, error) {
	key := watchKey{path: s.full(place.Path), children: true}
	return readAgain(ctx, s, "watch", place.Path, func(life context.Context) (*Watch, error) {
		w, arm, connection := s.watches.join(key)
		if !arm {
			s.places.watched(place, key, w)
			return w, nil
		}
		replies, err := s.wire.Requests().Identified().Exchange(life, s.deletionWatch(place))
		if err == nil {
			err = replies[0].Err()
		}
		s.watches.settle(key, w, err == nil, connection)
		if err == nil {
			s.places.watched(place, key, w)
		}
		return w, err
	})
}

// deletionWatch sets a watch for the deletion of a place: on its children, which
// never come, so that no other event can fire it. If the place is gone, or another
// of its name is there, the server says so at once. It is for an identified
// connection: a server keeps events from whoever may not read the znode.
func (s *Session) deletionWatch(place Place) conn.Request {
	return conn.WatchChildren(s.full(place.Path), place.Stat.Czxid)
}

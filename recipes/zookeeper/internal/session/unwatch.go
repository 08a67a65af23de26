package session

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// A watch for the creation of a znode that never comes would stay at the server for the
// session's life. So it is removed there when the last context has ended with which
// ExistsW was called for it.
//
// The watch fires here before it is removed there: a reader that has found it armed looks
// again. A reader that comes later waits until the server has answered. So it arms its own
// watch after the removal, which cannot take that away.

// lockFor locks ws when no removal for key is on its way.
func (ws *watches) lockFor(key watchKey) {
	for {
		ws.mu.Lock()
		removed := ws.removing[key]
		if removed == nil {
			return
		}
		ws.mu.Unlock()
		<-removed
	}
}

// joinWaiting is join for a reader that may wait for the creation of the znode.
func (ws *watches) joinWaiting(key watchKey) (w *Watch, arm bool, connection int) {
	ws.lockFor(key)
	defer ws.mu.Unlock()
	w, arm, connection = ws.joinLocked(key)
	w.waits++
	return w, arm, connection
}

// leave ends what joinWaiting has begun. It reports whether the watch is to be removed at
// the server, and then the caller has to call removed.
func (ws *watches) leave(key watchKey, w *Watch, cancelled bool) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.waits--
	if !cancelled || w.waits > 0 || w.tries > 0 || !w.armed || ws.byKey[key] != w {
		return false
	}
	ws.end(key, w)
	if ws.removing == nil {
		ws.removing = make(map[watchKey]chan struct{})
	}
	ws.removing[key] = make(chan struct{})
	return true
}

func (ws *watches) removed(key watchKey) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	close(ws.removing[key])
	delete(ws.removing, key)
}

// stop has the ends of contexts do nothing any more. It needs the watches' mutex.
func (w *Watch) stop() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}

// unwatchAfter has the watch removed when ctx ends, if no other wait needs it.
func (s *Session) unwatchAfter(ctx context.Context, key watchKey, w *Watch) {
	stop := context.AfterFunc(ctx, func() {
		if s.watches.leave(key, w, true) && !s.Background(func(life context.Context) { s.unwatch(life, key) }) {
			s.watches.removed(key)
		}
	})
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if s.watches.byKey[key] == w {
		w.stops = append(w.stops, stop)
	} else { // it has fired
		stop()
	}
}

// unwatch removes the data watch of key at the server. It waits for the answer, or for the
// end of the connection, with which the server's watches end.
func (s *Session) unwatch(life context.Context, key watchKey) {
	defer s.watches.removed(key)
	if !s.removesWatches(life) {
		return
	}
	if _, err := s.wire.Sender().Exchange(life, conn.RemoveDataWatch(key.path)); err != nil {
		s.log.Debug("a watch was not removed", "path", key.path, "error", err)
	}
}

// removesWatches reports whether the servers know the request, as those since 3.5 do. An
// older one ends the connection that sends it. So the session asks first, once, by a
// transaction that each server refuses: it would create what exists, as a container. A
// server before 3.5 refuses the flag.
func (s *Session) removesWatches(life context.Context) bool {
	if removes, known := s.wire.RemovesWatches(); known {
		return removes
	}
	_, err := readWith(life, s, "ask for the version", "/zookeeper", func(r conn.Sender) (struct{}, error) {
		return struct{}{}, r.CreateContainer("/zookeeper", s.acl)
	})
	removes, _ := s.wire.RemovesWatches()
	return removes && !errors.Is(err, conn.BadArguments)
}

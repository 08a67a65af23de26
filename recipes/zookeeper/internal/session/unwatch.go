package session

import (
	"context"
	"errors"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// A watch for the creation of a znode that is never created would remain at the server as long
// as the session. So the session removes it there when the last context with which ExistsW was
// called for it is done.
//
// The session first fires the watch, so a reader that shares it reads again, and then removes it
// at the server. A later reader waits until the server has answered. So its own watch is set
// after the removal, and is not removed by it.

// leave ends a wait that join has begun. It reports whether the watch must be removed at the
// server. The caller must then call removed.
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

// stop cancels the AfterFuncs of the contexts. The caller holds the watches' mutex.
func (w *Watch) stop() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}

// unwatchAfter removes the watch when ctx is done, unless another waiter needs it.
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

// unwatch removes the data watch of key at the server. It waits for the answer, or for the end
// of the connection, which also ends the server's watches.
func (s *Session) unwatch(life context.Context, key watchKey) {
	defer s.watches.removed(key)
	if !s.removesWatches(life) {
		return
	}
	if _, err := s.wire.Sender().Exchange(life, conn.RemoveDataWatch(key.path)); err != nil {
		s.log.Debug("a watch was not removed", "path", key.path, "error", err)
	}
}

// removesWatches reports whether the servers support removing a watch, as they do since 3.5. An
// older server closes the connection that sends such a request. So the session first finds out,
// once, by a transaction that every server refuses: the creation of an existing znode as a
// container. A server before 3.5 refuses the flag, a later one the existing path.
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

package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Watch is a one-shot notification that a znode, or the list of its children, has changed. All
// waiters of the session that watch the same share it.
type Watch struct {
	fired chan struct{}
	armed bool // set at the server
	tries int  // requests in flight that would set it

	// waits holds, by their Done channels, the contexts that wait for a creation. Each value
	// cancels the AfterFunc of its context.
	waits map[<-chan struct{}]func() bool

	event conn.Event // set before fired is closed
}

// Changed reports, once the watch has fired, whether the event was a change of the znode's
// data, not a deletion or creation.
func (w *Watch) Changed() bool { return w.event == conn.DataChanged }

// Created reports, once the watch has fired, whether the event was the creation of the znode.
func (w *Watch) Created() bool { return w.event == conn.NodeCreated }

// Fired is closed when the watch has fired. That does not say what changed: the caller reads
// again. It does not fire when the connection ends, nor after that. So a waiter also waits for
// the end of the connection, and then reads again.
func (w *Watch) Fired() <-chan struct{} { return w.fired }

// ErrUnwatched ends a hold whose znode the server refuses to watch. The znode may exist, but
// its deletion would not be noticed. The owner deletes it when it releases the hold, and not
// earlier: it may not have stopped its work yet.
var ErrUnwatched = errors.New("cannot watch")

// watchKey identifies a watch: on the znode itself, or on its children. The getData and exists
// watches of one znode have the same key. Either of them fires for every change that waiters of
// the other need.
type watchKey struct {
	path     string // at the server
	children bool
}

// watches holds the watches for which a session waits. A watch remains after a wait was
// abandoned, so that the next waiter shares it and abandoned watches do not pile up. A watch on
// a znode that does not exist may never fire, so it is removed with its last waiter.
//
// When a connection ends, its watches end. The waiters wake and set others. A request may be sent
// on a later connection than its watch was joined on. The watch that it sets then has no waiter.
type watches struct {
	mu       sync.Mutex
	byKey    map[watchKey]*Watch // of the current connection
	removing map[watchKey]chan struct{}
}

// join returns the watch for key. If arm is true, the caller must set it at the server, and then
// call settle. Callers join before they send the request, because the event may arrive before they
// see the reply. join first waits until no removal for key is in flight, which may take as long as
// the server throttles. If ctx is done first, the error is ctx's, and nothing was joined.
func (ws *watches) join(ctx context.Context, key watchKey) (w *Watch, arm bool, _ error) {
	ws.mu.Lock()
	for removed := ws.removing[key]; removed != nil; removed = ws.removing[key] {
		ws.mu.Unlock()
		select {
		case <-removed:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
		ws.mu.Lock()
	}
	defer ws.mu.Unlock()
	w = ws.byKey[key]
	if w == nil {
		w = &Watch{fired: make(chan struct{})}
		if ws.byKey == nil {
			ws.byKey = make(map[watchKey]*Watch)
		}
		ws.byKey[key] = w
	}
	if w.armed {
		return w, false, nil
	}
	w.tries++
	return w, true, nil
}

// settle ends an attempt to set w.
func (ws *watches) settle(key watchKey, w *Watch, armed bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.tries--
	w.armed = w.armed || armed
	if !w.armed && w.tries == 0 && ws.byKey[key] == w {
		delete(ws.byKey, key)
	}
}

// disconnected drops the watches of the connection that has ended.
func (ws *watches) disconnected() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.byKey {
		w.stop()
	}
	clear(ws.byKey)
}

// armed reports whether w is set at the server of the current connection and has not fired.
func (ws *watches) armed(key watchKey, w *Watch) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.armed && ws.byKey[key] == w
}

func (ws *watches) fire(event conn.Event, path string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if event != conn.ChildrenChanged {
		ws.fireKey(watchKey{path: path}, event)
	}
	if event == conn.ChildrenChanged || event == conn.NodeDeleted {
		ws.fireKey(watchKey{path: path, children: true}, event)
	}
}

func (ws *watches) fireKey(key watchKey, event conn.Event) {
	if w := ws.byKey[key]; w != nil {
		w.event = event
		ws.end(key, w)
	}
}

func (ws *watches) end(key watchKey, w *Watch) {
	close(w.fired)
	delete(ws.byKey, key)
	w.stop()
}

// A watch for the creation of a znode that is never created would remain at the server as long
// as the session. So the session removes it there when the last context with which ExistsW was
// called for it is done.
//
// The session first fires the watch, so a reader that shares it reads again, and then removes it
// at the server. A later reader waits until the server has answered. So its own watch is set
// after the removal, and is not removed by it.

// leave ends the wait of a context. It reports whether the watch must be removed at the server.
// The caller must then call removed.
func (ws *watches) leave(key watchKey, w *Watch, done <-chan struct{}) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(w.waits, done)
	if len(w.waits) > 0 || w.tries > 0 || !w.armed || ws.byKey[key] != w {
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
	for _, stop := range w.waits {
		stop()
	}
	w.waits = nil
}

// unwatchAfter removes the watch when ctx is done, unless another context waits for it. A caller
// that reads again with the same ctx adds nothing.
func (s *Session) unwatchAfter(ctx context.Context, key watchKey, w *Watch) {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	done := ctx.Done()
	if s.watches.byKey[key] != w || w.waits[done] != nil { // the watch has fired, or ctx already waits for it
		return
	}
	if w.waits == nil {
		w.waits = make(map[<-chan struct{}]func() bool)
	}
	w.waits[done] = context.AfterFunc(ctx, func() {
		if s.watches.leave(key, w, done) && !s.Background(func(life context.Context) { s.unwatch(life, key) }) {
			s.watches.removed(key)
		}
	})
}

// unwatch removes the data watch of key at the server. It waits for the answer, or for the end
// of the connection, which also ends the server's watches.
func (s *Session) unwatch(life context.Context, key watchKey) {
	defer s.watches.removed(key)
	_, err := RetryThrottled(life, s, func() (none struct{}, _ error) {
		if removes, err := s.removesWatches(life); !removes {
			return none, err
		}
		replies, err := s.exchangeOn(life, s.wire.Current(), conn.RemoveDataWatch(key.path))
		if err == nil {
			err = replies[0].Err()
		}
		return none, err
	})
	if err != nil {
		s.log.Debug("a watch was not removed", "path", key.path, "error", err)
	}
}

// removesWatches reports whether the servers support removing a watch, as they do since 3.5. An
// older server closes the connection that sends such a request. So the session first finds out,
// once, by a transaction that every server refuses: the creation of an existing znode as a
// container. A server before 3.5 refuses the flag, a later one the existing path.
func (s *Session) removesWatches(life context.Context) (bool, error) {
	if removes, known := s.wire.RemovesWatches(); known {
		return removes, nil
	}
	_, err := readWith(life, s, "ask for the version", "/zookeeper", func() (struct{}, error) {
		return struct{}{}, s.wire.CreateContainer("/zookeeper", s.acl)
	})
	removes, _ := s.wire.RemovesWatches()
	return removes && !errors.Is(err, conn.BadArguments), err
}

// Wait returns nil when one of the events happens: a watch fires, the connection ends (the
// channel that Connected returned), or another channel closes. The caller then reads again. A
// nil channel never causes a return. If the session is lost first, Wait returns the reason. If ctx is
// done first, it returns ctx's error, with what the caller was waiting for.
func (s *Session) Wait(ctx context.Context, what string, events ...<-chan struct{}) error {
	const lost, ended = 0, 1
	switch waitAny(append([]<-chan struct{}{s.Done(), ctx.Done()}, events...)) {
	case lost:
		return s.Err()
	case ended:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	return nil
}

// waitAny waits until one of the channels is closed, and returns its index.
func waitAny(events []<-chan struct{}) int {
	// Most waits have two events besides the session's end and ctx's. A select statement for
	// four channels allocates nothing.
	if len(events) == 4 {
		select {
		case <-events[0]:
			return 0
		case <-events[1]:
			return 1
		case <-events[2]:
			return 2
		case <-events[3]:
			return 3
		}
	}
	cases := make([]reflect.SelectCase, len(events))
	for i, event := range events {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(event)}
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen
}

// Happened reports whether event is closed.
func Happened(event <-chan struct{}) bool { return conn.Happened(event) }

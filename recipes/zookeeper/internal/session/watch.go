package session

import (
	"errors"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// Watch is a one-shot notification that a znode, or the list of its children,
// has changed. It is shared by all waiters of the session that watch the same.
type Watch struct {
	fired chan struct{}
	armed bool // the server of the present connection has it
	tries int  // requests under way that would arm it

	waits int           // those that wait for a creation: see unwatch
	stops []func() bool // stop listening for the ends of their contexts

	event conn.Event // set before fired is closed
}

// Changed reports, once the watch has fired, whether the event said that the
// node's data was changed, rather than that it was deleted or created.
func (w *Watch) Changed() bool { return w.event == conn.DataChanged }

// Created is Changed for an event that said that the node was created.
func (w *Watch) Created() bool { return w.event == conn.NodeCreated }

// Fired is closed when the watch has fired. It says nothing about what it found:
// look again. It does not fire when the connection is lost, nor after that. A
// waiter waits for that too, and looks again.
func (w *Watch) Fired() <-chan struct{} { return w.fired }

// ErrUnwatched ends what somebody holds by a znode that the server refuses to watch. The
// znode may be there, but its removal would not be noticed. Its owner deletes it when it
// gives back what it held, and not before: it may not have stopped yet.
var ErrUnwatched = errors.New("cannot watch")

// watchKey is what is watched: the node itself or its children. A getData and an
// exists watch of one node are one key: whichever of them the server has, it
// fires for every change that waiters of either want to know.
type watchKey struct {
	path     string // at the server
	children bool
}

// watches are the watches that a session waits for. One for each abandoned wait would pile
// up, so the next waiter finds the watch that is armed. One for a znode that does not
// exist may never fire. It is removed with its last waiter: see unwatch.go.
//
// When a connection is lost its watches are gone. The waiters have been woken, and arm
// them again.
type watches struct {
	mu          sync.Mutex
	byKey       map[watchKey]*Watch
	connections int // that were lost
	removing    map[watchKey]chan struct{}
}

// join returns the watch for key and whether the caller has to arm it, which it
// then must report to settle. The watch is entered before the request is sent,
// because its event may come before the caller sees the reply.
func (ws *watches) join(key watchKey) (w *Watch, arm bool, connection int) {
	ws.lockFor(key)
	defer ws.mu.Unlock()
	return ws.joinLocked(key)
}

func (ws *watches) joinLocked(key watchKey) (w *Watch, arm bool, connection int) {
	w = ws.byKey[key]
	if w == nil {
		w = &Watch{fired: make(chan struct{})}
		if ws.byKey == nil {
			ws.byKey = make(map[watchKey]*Watch)
		}
		ws.byKey[key] = w
	}
	if w.armed {
		return w, false, ws.connections
	}
	w.tries++
	return w, true, ws.connections
}

// settle ends an attempt to arm w that began in that connection.
func (ws *watches) settle(key watchKey, w *Watch, armed bool, connection int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.tries--
	w.armed = w.armed || armed && connection == ws.connections
	if !w.armed && w.tries == 0 && ws.byKey[key] == w {
		delete(ws.byKey, key)
	}
}

// disconnected forgets what the connection that was lost had armed.
func (ws *watches) disconnected() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.connections++
	for key, w := range ws.byKey {
		w.armed = false
		w.stop()
		if w.tries == 0 {
			delete(ws.byKey, key)
		}
	}
}

// waits reports whether the server of the present connection has w and has not fired it.
func (ws *watches) waits(key watchKey, w *Watch) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return w.armed && ws.byKey[key] == w
}

// fire wakes the waiters of an event.
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

// end has w fire.
func (ws *watches) end(key watchKey, w *Watch) {
	close(w.fired)
	delete(ws.byKey, key)
	w.stop()
}

package zkserver

// eventType is the type field of a watch event.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// watchMode says whether a watch fires once or always, for a node or a tree. A connection has one
// mode for a path: the one of the latest request, as in ZooKeeper 3.8.0.
type watchMode int32

const (
	watchPersistent watchMode = 0 // the numbers of addWatch
	watchRecursive  watchMode = 1
	watchStandard   watchMode = -1
)

// watchTable holds the watches of one kind. Exists watches live with the data
// watches, as in ZooKeeper. It is guarded by the server's mutex.
type watchTable struct {
	byPath    map[string]map[*conn]watchMode
	byConn    map[*conn]map[string]struct{}
	n         int
	recursive int // how many of them are recursive
}

func newWatchTable() *watchTable {
	return &watchTable{
		byPath: make(map[string]map[*conn]watchMode),
		byConn: make(map[*conn]map[string]struct{}),
	}
}

// add arms a watch. Arming it again changes nothing: a connection has at most
// one watch of a kind on a path, and gets one event.
func (w *watchTable) add(path string, c *conn, mode watchMode) {
	if c.gone {
		return // a request that was held back longer than its connection lived
	}
	w.remove(path, c)
	conns := w.byPath[path]
	if conns == nil {
		conns = make(map[*conn]watchMode)
		w.byPath[path] = conns
	}
	conns[c] = mode
	paths := w.byConn[c]
	if paths == nil {
		paths = make(map[string]struct{})
		w.byConn[c] = paths
	}
	paths[path] = struct{}{}
	w.n++
	if mode == watchRecursive {
		w.recursive++
	}
}

// hasAny is how ZooKeeper 3.8.0 answers checkWatches: it does not check whose watch it
// is.
func (w *watchTable) hasAny(path string, _ *conn) bool { return len(w.byPath[path]) > 0 }

// remove disarms a watch and reports whether there was one.
func (w *watchTable) remove(path string, c *conn) bool {
	mode, ok := w.byPath[path][c]
	if !ok {
		return false
	}
	if mode == watchRecursive {
		w.recursive--
	}
	delete(w.byPath[path], c)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byConn[c], path)
	if len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
	w.n--
	return true
}

// drop disarms all watches of a connection.
func (w *watchTable) drop(c *conn) {
	for path := range w.byConn[c] {
		w.remove(path, c)
	}
}

// trigger sends an event to the connections that watch path, and disarms what fires only
// once. Those in told got the same event from another watch, and get no second one. It
// returns the connections that it found.
func (w *watchTable) trigger(path string, e eventType, acl []ACL, told map[*conn]struct{}) map[*conn]struct{} {
	found := w.fire(path, e)
	for c := range found {
		if _, ok := told[c]; !ok && allowed(acl, permRead, c.who) {
			c.sendEvent(e, path)
		}
	}
	return found
}

func (w *watchTable) fire(path string, e eventType) map[*conn]struct{} {
	if len(w.byPath[path]) == 0 && w.recursive == 0 {
		return nil
	}
	found := make(map[*conn]struct{})
	for c, mode := range w.byPath[path] {
		if mode == watchRecursive && e == eventChildrenChanged {
			continue // it gets the events of the children themselves
		}
		found[c] = struct{}{}
		if mode == watchStandard {
			w.remove(path, c)
		}
	}
	if w.recursive == 0 || e == eventChildrenChanged {
		return found
	}
	for up := path; up != "/"; {
		up = parentOf(up)
		for c, mode := range w.byPath[up] {
			if mode == watchRecursive {
				found[c] = struct{}{}
			}
		}
	}
	return found
}

// parentOf gives "/" for a path without a parent.
func parentOf(path string) string {
	if parent, _, _ := splitPath(path); parent != "" {
		return parent
	}
	return "/"
}

// change is what a transaction did to one node, in the terms of watches.
type change struct {
	event     eventType
	path      string
	acl       []ACL // of the node, which may be gone
	parentACL []ACL
}

// announce fires the watches for a change. The order is ZooKeeper's: watches of the node
// come before child watches of its parent. A connection that watches both data and
// children of a deleted node gets one event. A client that may not read a node gets none,
// and its watch is gone (since the fix of CVE-2024-23944, which Debian's 3.8.0 has).
func (s *Server) announce(ch change) {
	told := s.dataWatches.trigger(ch.path, ch.event, ch.acl, nil)
	if ch.event == eventDataChanged {
		return
	}
	if ch.event == eventDeleted {
		s.childWatches.trigger(ch.path, eventDeleted, ch.acl, told)
	}
	s.childWatches.trigger(parentOf(ch.path), eventChildrenChanged, ch.parentACL, nil)
}

// rearm is setWatches. A client that resumes its session lists the watches that it had
// and the last transaction that it saw. What it missed fires at once, before the reply.
// The rest is armed again.
func (s *Server) rearm(c *conn, w watchList) {
	for _, path := range w.data {
		switch n := s.tree.get(path); {
		case n == nil:
			c.sendEvent(eventDeleted, path)
		case n.mzxid > w.relativeZxid:
			c.sendEvent(eventDataChanged, path)
		default:
			s.dataWatches.add(path, c, watchStandard)
		}
	}
	for _, path := range w.exist {
		if s.tree.get(path) != nil {
			c.sendEvent(eventCreated, path)
		} else {
			s.dataWatches.add(path, c, watchStandard)
		}
	}
	for _, path := range w.child {
		switch n := s.tree.get(path); {
		case n == nil:
			c.sendEvent(eventDeleted, path)
		case n.pzxid > w.relativeZxid:
			c.sendEvent(eventChildrenChanged, path)
		default:
			s.childWatches.add(path, c, watchStandard)
		}
	}
	for _, path := range w.persistent {
		s.addWatch(path, c, watchPersistent)
	}
	for _, path := range w.recursive {
		s.addWatch(path, c, watchRecursive)
	}
}

// addWatch arms a watch that stays.
func (s *Server) addWatch(path string, c *conn, mode watchMode) {
	s.dataWatches.add(path, c, mode)
	s.childWatches.add(path, c, mode)
}

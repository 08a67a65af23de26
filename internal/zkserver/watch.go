package zkserver

// eventType is the type field of a watch event.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// watchTable holds the one-shot watches of one kind. Exists watches live with
// the data watches, as in ZooKeeper. It is guarded by the server's mutex.
type watchTable struct {
	byPath map[string]map[*conn]struct{}
	byConn map[*conn]map[string]struct{}
	n      int
}

func newWatchTable() *watchTable {
	return &watchTable{
		byPath: make(map[string]map[*conn]struct{}),
		byConn: make(map[*conn]map[string]struct{}),
	}
}

// add arms a watch. Arming it again changes nothing: a connection has at most
// one watch of a kind on a path, and gets one event.
func (w *watchTable) add(path string, c *conn) {
	conns := w.byPath[path]
	if conns == nil {
		conns = make(map[*conn]struct{})
		w.byPath[path] = conns
	}
	if _, ok := conns[c]; ok {
		return
	}
	conns[c] = struct{}{}
	paths := w.byConn[c]
	if paths == nil {
		paths = make(map[string]struct{})
		w.byConn[c] = paths
	}
	paths[path] = struct{}{}
	w.n++
}

func (w *watchTable) has(path string, c *conn) bool {
	_, ok := w.byPath[path][c]
	return ok
}

// hasAny is how ZooKeeper 3.8.0 answers checkWatches: it forgets to ask whose
// watch it is.
func (w *watchTable) hasAny(path string, _ *conn) bool { return len(w.byPath[path]) > 0 }

// remove disarms a watch and reports whether there was one.
func (w *watchTable) remove(path string, c *conn) bool {
	if !w.has(path, c) {
		return false
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

// trigger disarms the watches on path and sends their connections an event,
// except to those in told, who heard of the same event through another watch.
// It returns the connections whose watch was disarmed.
func (w *watchTable) trigger(path string, e eventType, acl []ACL, told map[*conn]struct{}) map[*conn]struct{} {
	conns := w.byPath[path]
	delete(w.byPath, path)
	w.n -= len(conns)
	for c := range conns {
		delete(w.byConn[c], path)
		if len(w.byConn[c]) == 0 {
			delete(w.byConn, c)
		}
		if _, ok := told[c]; !ok && allowed(acl, permRead, c.who) {
			c.sendEvent(e, path)
		}
	}
	return conns
}

// change is what a transaction did to one node, in the terms of watches.
type change struct {
	event        eventType
	path, parent string
	acl          []ACL // of the node, which may be gone
	parentACL    []ACL
}

// announce fires the watches that a change concerns. The order is ZooKeeper's:
// watches of the node before child watches of its parent, and a connection
// that watches both data and children of a deleted node hears of it once.
// Who may not read a node does not hear of it either, though its watch is
// spent (since the fix of CVE-2024-23944, which Debian's 3.8.0 has).
func (s *Server) announce(ch change) {
	told := s.dataWatches.trigger(ch.path, ch.event, ch.acl, nil)
	if ch.event == eventDataChanged {
		return
	}
	if ch.event == eventDeleted {
		s.childWatches.trigger(ch.path, eventDeleted, ch.acl, told)
	}
	parent := ch.parent
	if parent == "" {
		parent = "/"
	}
	s.childWatches.trigger(parent, eventChildrenChanged, ch.parentACL, nil)
}

// rearm is setWatches: a client that comes back with its session lists the
// watches that it had and the last transaction it saw. What it missed fires at
// once, before the reply; the rest is armed again.
func (s *Server) rearm(c *conn, w watchList) {
	for _, path := range w.data {
		switch n := s.tree.get(path); {
		case n == nil:
			c.sendEvent(eventDeleted, path)
		case n.mzxid > w.relativeZxid:
			c.sendEvent(eventDataChanged, path)
		default:
			s.dataWatches.add(path, c)
		}
	}
	for _, path := range w.exist {
		if s.tree.get(path) != nil {
			c.sendEvent(eventCreated, path)
		} else {
			s.dataWatches.add(path, c)
		}
	}
	for _, path := range w.child {
		switch n := s.tree.get(path); {
		case n == nil:
			c.sendEvent(eventDeleted, path)
		case n.pzxid > w.relativeZxid:
			c.sendEvent(eventChildrenChanged, path)
		default:
			s.childWatches.add(path, c)
		}
	}
}

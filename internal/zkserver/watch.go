package zkserver

// eventType is the type field of a watch event.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// watchMode says whether a watch fires once or always, and for a znode or a tree. For one
// path a connection has one mode, that of its latest request, as in ZooKeeper 3.8.0.
type watchMode int32

const (
	watchPersistent watchMode = 0 // the numbers of addWatch
	watchRecursive  watchMode = 1
	watchStandard   watchMode = -1 // fires once
)

// watchTable holds the watches of one kind. As in ZooKeeper, the data watches include the
// exists watches. The server's mutex guards it.
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

// add sets a watch. A connection has at most one watch of a kind on a path and gets one
// event, however many requests set it.
func (w *watchTable) add(path string, c *conn, mode watchMode) {
	if c.gone {
		return // the request was held back until its connection had ended
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

// hasAny answers checkWatches. ZooKeeper 3.8.0 does not check whose watch it is.
func (w *watchTable) hasAny(path string, _ *conn) bool { return len(w.byPath[path]) > 0 }

// remove deletes a watch and reports whether there was one.
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

// drop deletes all watches of a connection.
func (w *watchTable) drop(c *conn) {
	for path := range w.byConn[c] {
		w.remove(path, c)
	}
}

// trigger sends an event to the connections that watch path, and deletes the watches that
// fire once. It leaves out the connections in notified, which have the event from another
// watch. It returns the connections that watched path.
func (w *watchTable) trigger(path string, e eventType, acl []ACL, notified map[*conn]struct{}) map[*conn]struct{} {
	found := w.fire(path, e)
	for c := range found {
		if _, ok := notified[c]; !ok && allowed(acl, permRead, c.who) {
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
			continue // it fires for the child instead
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

// parentOf returns the parent of a path, or "/" if it has none.
func parentOf(path string) string {
	if parent, _, _ := splitPath(path); parent != "" {
		return parent
	}
	return "/"
}

// change is a change of one znode that can fire watches.
type change struct {
	event     eventType
	path      string
	acl       []ACL // of the znode, which may be deleted
	parentACL []ACL
}

// announce fires the watches for a change. As in ZooKeeper, the watches of the znode fire
// before the child watches of its parent. A connection that watches both data and children
// of a deleted znode gets one event. A client that may not read the znode gets no event,
// but its watch is deleted (since the fix of CVE-2024-23944, which Debian's 3.8.0 has).
func (s *Server) announce(ch change) {
	notified := s.dataWatches.trigger(ch.path, ch.event, ch.acl, nil)
	if ch.event == eventDataChanged {
		return
	}
	if ch.event == eventDeleted {
		s.childWatches.trigger(ch.path, eventDeleted, ch.acl, notified)
	}
	s.childWatches.trigger(parentOf(ch.path), eventChildrenChanged, ch.parentACL, nil)
}

// rearm executes setWatches. A client that resumes its session sends the watches that it
// had and the last zxid that it saw. A watch fires at once, before the reply, if the client
// missed its event. The others are set again.
func (s *Server) rearm(c *conn, w watchList) {
	again := func(paths []string, table *watchTable, changed eventType, changedAt func(*znode) int64) {
		for _, path := range paths {
			switch n := s.tree.get(path); {
			case n == nil:
				c.sendEvent(eventDeleted, path)
			case changedAt(n) > w.relativeZxid:
				c.sendEvent(changed, path)
			default:
				table.add(path, c, watchStandard)
			}
		}
	}
	again(w.data, s.dataWatches, eventDataChanged, func(n *znode) int64 { return n.mzxid })
	for _, path := range w.exist {
		if s.tree.get(path) != nil {
			c.sendEvent(eventCreated, path)
		} else {
			s.dataWatches.add(path, c, watchStandard)
		}
	}
	again(w.child, s.childWatches, eventChildrenChanged, func(n *znode) int64 { return n.pzxid })
	for _, path := range w.persistent {
		s.addWatch(path, c, watchPersistent)
	}
	for _, path := range w.recursive {
		s.addWatch(path, c, watchRecursive)
	}
}

// addWatch sets a persistent watch.
func (s *Server) addWatch(path string, c *conn, mode watchMode) {
	s.dataWatches.add(path, c, mode)
	s.childWatches.add(path, c, mode)
}

package zkserver

// eventType is the type field of a watch event.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

// watchMode is a set of modes: whether a watch fires once or always, and for a znode or a
// tree. Before 3.9 a connection has one mode for a path, that of its latest request.
type watchMode uint8

const (
	watchStandard watchMode = 1 << iota // fires once
	watchPersistent
	watchRecursive

	watchAny = watchStandard | watchPersistent | watchRecursive
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
	if c.srv.profile.answers >= Release39 {
		mode |= w.byPath[path][c]
	}
	w.remove(path, c, watchAny)
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
	if mode&watchRecursive != 0 {
		w.recursive++
	}
}

// has answers checkWatches. Before 3.9, ZooKeeper does not check whose watch it is.
func (w *watchTable) has(path string, c *conn, modes watchMode) bool {
	if c.srv.profile.answers < Release39 {
		return len(w.byPath[path]) > 0
	}
	return w.byPath[path][c]&modes != 0
}

// remove deletes the watches of some modes and reports whether there was one.
func (w *watchTable) remove(path string, c *conn, modes watchMode) bool {
	mode := w.byPath[path][c]
	if mode&modes == 0 {
		return false
	}
	if mode&modes&watchRecursive != 0 {
		w.recursive--
	}
	if rest := mode &^ modes; rest != 0 {
		w.byPath[path][c] = rest
		return true
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
		w.remove(path, c, watchAny)
	}
}

// trigger sends an event to the connections that watch path, and deletes the watches that
// fire once. It leaves out the connections in notified, which have the event from another
// watch. It returns the connections that watched path.
func (w *watchTable) trigger(path string, e eventType, zxid int64, acl []ACL, notified map[*conn]struct{}) map[*conn]struct{} {
	found := w.fire(path, e)
	for c := range found {
		if _, ok := notified[c]; !ok && (c.srv.profile.watchesUnreadable || allowed(acl, permRead, c.who)) {
			c.sendEvent(e, path, zxid)
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
			continue // a recursive watch fires for the child instead
		}
		found[c] = struct{}{}
		w.remove(path, c, watchStandard)
	}
	if w.recursive == 0 || e == eventChildrenChanged {
		return found
	}
	for up := path; up != "/"; {
		up = parentOf(up)
		for c, mode := range w.byPath[up] {
			if mode&watchRecursive != 0 {
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
	watched   string // whose data watch fires: the path, or that which was requested
	acl       []ACL  // of the znode, which may be deleted
	parentACL []ACL
}

// announce fires the watches for a change. As in ZooKeeper, the watches of the znode fire
// before the child watches of its parent. A connection that watches both data and children
// of a deleted znode gets one event. A client that may not read the znode gets no event,
// but its watch is deleted (since the fix of CVE-2024-23944, which Debian's 3.8.0 has).
func (s *Server) announce(ch change, zxid int64) {
	notified := s.dataWatches.trigger(ch.watched, ch.event, zxid, ch.acl, nil)
	if ch.event == eventDataChanged {
		return
	}
	if ch.event == eventDeleted {
		s.childWatches.trigger(ch.path, eventDeleted, zxid, ch.acl, notified)
	}
	s.childWatches.trigger(parentOf(ch.path), eventChildrenChanged, zxid, ch.parentACL, nil)
}

// rearm executes setWatches. A client that resumes its session sends the watches that it
// had and the last zxid that it saw. A watch fires at once, before the reply, if the client
// missed its event. The others are set again. 3.9.6 sends no event for a znode that the
// client may not read; earlier versions do.
func (s *Server) rearm(c *conn, w watchList) {
	fire := func(e eventType, path string) {
		if n := s.tree.get(path); n == nil || s.profile.answers < Release39 || allowed(n.acl, permRead, c.who) {
			c.sendEvent(e, path, noZxid)
		}
	}
	again := func(paths []string, table *watchTable, changed eventType, changedAt func(*znode) int64) {
		for _, path := range paths {
			switch n := s.tree.get(path); {
			case n == nil:
				fire(eventDeleted, path)
			case changedAt(n) > w.relativeZxid:
				fire(changed, path)
			default:
				table.add(path, c, watchStandard)
			}
		}
	}
	again(w.data, s.dataWatches, eventDataChanged, func(n *znode) int64 { return n.mzxid })
	for _, path := range w.exist {
		if s.tree.get(path) != nil {
			fire(eventCreated, path)
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

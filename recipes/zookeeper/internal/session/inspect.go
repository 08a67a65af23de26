package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/lease"
)

// Inspection checks the children of a path while the session holds something there: see
// Session.Inspect.
type Inspection struct {
	session *Session
	path    string // at the server
	check   func(*Inspection, Stat)
}

// Inspect calls check with the record of path, once with the next confirmation, and again if a child
// was created or deleted since, or the connection was lost. While nothing happens at the path, it
// sends nothing. Call Stop when the hold ends. One goroutine of the session makes all calls of check.
// check must not block, and may still be called once after Stop.
//
// A missing path has the zero record. It cannot be watched, so it is read with each confirmation. The
// hold there has lost its znode, so check should end it.
//
// With a confirmation, the session first sets a watch on the children, and then reads the record. So
// each change is in the record, or fires the watch. The watch fires once, and the path is then due
// again. So a path costs at most one read, one event and its share in a request for watches for each
// confirmation, however often it changes. (A persistent watch would send an event for each change.)
// A server sets the watch without reading anything, since ZooKeeper 3.3. ClickHouse Keeper may not
// know that request. There the session lists the path instead, which sets the watch and returns the
// record: a change then costs a listing.
//
// In each confirmation, at most a tenth of the paths is read, or leastInspected. So a session whose
// connection was lost has read all of its paths again after a timeout, however many there are.
func (s *Session) Inspect(path string, check func(*Inspection, Stat)) *Inspection {
	i := &Inspection{s, s.full(path), check}
	s.inspections.add(i)
	return i
}

// Again makes the path due again, because a check had no result.
func (i *Inspection) Again() { i.session.inspections.fire(i.path) }

// Stop ends the inspection.
func (i *Inspection) Stop() { i.session.inspections.remove(i) }

// leastInspected is the number of paths that are read with each confirmation if so many are due.
const leastInspected = 1000

// inspections holds the inspections of a session. No method takes longer with more of them, except
// disconnected.
type inspections struct {
	mu     sync.Mutex
	byPath map[string]*inspected
	due    []*inspected // in the order in which they became due; some may have no inspections left
}

// inspected is a path with its inspections. They share the reads.
type inspected struct {
	path        string
	inspections []*Inspection
	due         bool // in inspections.due. Otherwise its watch is set, or a reading is in flight
}

func (is *inspections) add(i *Inspection) {
	is.mu.Lock()
	defer is.mu.Unlock()
	p := is.byPath[i.path]
	if p == nil {
		p = &inspected{path: i.path}
		if is.byPath == nil {
			is.byPath = make(map[string]*inspected)
		}
		is.byPath[i.path] = p
	}
	p.inspections = append(p.inspections, i)
	is.again(p)
}

func (is *inspections) remove(i *Inspection) {
	is.mu.Lock()
	defer is.mu.Unlock()
	p := is.byPath[i.path]
	if p == nil {
		return
	}
	p.inspections = slices.DeleteFunc(p.inspections, func(other *Inspection) bool { return other == i })
	if len(p.inspections) == 0 {
		delete(is.byPath, i.path)
	}
}

// again makes a path due. The caller holds the mutex.
func (is *inspections) again(p *inspected) {
	if !p.due {
		p.due = true
		is.due = append(is.due, p)
	}
}

// fire makes a path due whose children have changed.
func (is *inspections) fire(path string) {
	is.mu.Lock()
	defer is.mu.Unlock()
	if p := is.byPath[path]; p != nil {
		is.again(p)
	}
}

// disconnected makes all paths due: their watches ended with the connection.
func (is *inspections) disconnected() {
	is.mu.Lock()
	defer is.mu.Unlock()
	for _, p := range is.byPath {
		is.again(p)
	}
}

func (is *inspections) waiting() bool {
	is.mu.Lock()
	defer is.mu.Unlock()
	return len(is.due) > 0
}

// take returns the paths that are read with this confirmation.
func (is *inspections) take() (taken []*inspected) {
	is.mu.Lock()
	defer is.mu.Unlock()
	most := max(leastInspected, len(is.byPath)/lease.Confirmations+1)
	for len(is.due) > 0 && len(taken) < most {
		p := is.due[0]
		is.due[0], is.due = nil, is.due[1:]
		p.due = false
		if len(p.inspections) > 0 {
			taken = append(taken, p)
		}
	}
	return taken
}

// reading is a batch that sets watches and reads records.
type reading struct {
	batch   *conn.Batch // nil if it could not be sent
	paths   []*inspected
	watches int  // requests before the read of the first path
	lists   bool // each read lists its path, and sets the watch
}

// sendInspections sends what is due. It returns nil if nothing is.
func (s *Session) sendInspections() *reading {
	r := &reading{paths: s.inspections.take()}
	if len(r.paths) == 0 {
		return nil
	}
	names := make([]string, len(r.paths))
	for n, p := range r.paths {
		names[n] = p.path
	}
	var requests []conn.Request
	read := func(path string) conn.Request { return conn.Exists(path, false) }
	if s.wire.Keeper() {
		r.lists = true
		read = func(path string) conn.Request { return conn.Children(path, true) }
	} else {
		requests = conn.WatchFromNowOn(names, s.wire.MaxPacket/2)
	}
	r.watches = len(requests)
	for _, name := range names {
		requests = append(requests, read(name))
	}
	r.batch, _ = s.wire.Current().Send(requests...)
	return r
}

// stat returns the record of the n-th path.
func (r *reading) stat(replies []conn.Reply, n int) (Stat, error) {
	reply := replies[r.watches+n]
	if !r.lists {
		return reply.Stat()
	}
	l, err := reply.Listing()
	return l.Stat, err
}

// answered is closed when all replies have arrived.
func (r *reading) answered() <-chan struct{} {
	if r == nil || r.batch == nil {
		return nil
	}
	return r.batch.Answered()
}

func (r *reading) settled() bool { return r != nil && (r.batch == nil || r.batch.Settled()) }

// report passes the records to the inspections. What was not answered is due again.
func (is *inspections) report(r *reading) {
	var replies []conn.Reply
	if Happened(r.answered()) {
		replies, _ = r.batch.Await(context.Background())
	}
	watched := replies != nil && !slices.ContainsFunc(replies[:r.watches], func(r conn.Reply) bool { return r.Err() != nil })
	for n, p := range r.paths {
		err := error(nil)
		if replies != nil {
			var stat Stat
			if stat, err = r.stat(replies, n); err == nil || errors.Is(err, recipes.ErrNoNode) {
				for _, i := range is.of(p) {
					i.check(i, stat)
				}
			}
		}
		if !watched || err != nil && (r.lists || !errors.Is(err, recipes.ErrNoNode)) { // a listing of a missing path sets no watch
			is.fire(p.path)
		}
	}
}

func (is *inspections) of(p *inspected) []*Inspection {
	is.mu.Lock()
	defer is.mu.Unlock()
	return slices.Clone(p.inspections)
}

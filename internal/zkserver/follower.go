package zkserver

import (
	"maps"
	"net"
	"slices"
	"time"
)

// Follower is another server of an ensemble whose leader is the [Server]. A client can
// notice these differences:
//
//   - The follower answers pings and reads itself. It reports to the leader which
//     sessions are alive only every half tick, when the leader polls it, and when a
//     session is resumed.
//   - It can be cut off from the leader. Then it still answers pings and reads, and
//     accepts no new connection. Writes, syncs and the events of the leader's changes wait. (Reads
//     return the leader's current state, until [Follower.Lag] is called.)
//   - It can be late: cut off, but with new connections, whose sessions read an old state.
//   - It can crash before it has reported to the leader.
type Follower struct {
	srv *Server

	// Guarded by the server's mutex.
	heard   map[*session]struct{} // sessions whose clients sent something since the last report
	queues  map[*session]*queue
	pollAt  time.Time     // the leader's next poll
	missed  bool          // the leader has polled while the follower was cut off
	cut     chan struct{} // non-nil while cut off, closed when that ends
	backlog []func()      // the leader's changes since then, in order
	behind  *tree         // non-nil while it lags: the state that it shows
	late    bool          // it takes connections although it is cut off
}

// Follower returns a new follower of the server.
func (s *Server) Follower() *Follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{srv: s, heard: make(map[*session]struct{}), queues: make(map[*session]*queue), pollAt: time.Now().Add(s.cfg.TickTime / 2)}
	s.followers = append(s.followers, f)
	s.wakeExpiry()
	return f
}

// ServeConn is [Server.ServeConn] for a client of the follower.
func (f *Follower) ServeConn(nc net.Conn) { f.srv.serve(nc, f) }

// Crash drops the follower's connections. A session that it has not yet reported as alive is
// not extended.
func (f *Follower) Crash() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	clear(f.heard)
	for _, c := range f.srv.connections() {
		if c.follower == f {
			f.srv.detach(c).abort()
		}
	}
}

// CutOff separates the follower from its leader.
func (f *Follower) CutOff() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if f.cut == nil {
		f.cut = make(chan struct{})
	}
}

// Lag makes reads of the follower return the leader's state at the time of this call, until
// [Follower.Heal].
// The follower must be cut off.
func (f *Follower) Lag() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.behind = f.srv.tree.clone()
}

// Late is CutOff and Lag for a follower that still takes connections, until [Follower.Heal]: it has
// received the leader's changes, but is slow to apply them. As in ZooKeeper, it refuses a client
// that has seen a later transaction than it has applied.
func (f *Follower) Late() {
	f.CutOff()
	f.Lag()
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	f.late = true
}

// Deliver passes the leader's oldest undelivered change since the cut on to the follower's
// clients. It returns false if all are delivered.
func (f *Follower) Deliver() bool {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	if len(f.backlog) == 0 {
		return false
	}
	deliver := f.backlog[0]
	f.backlog = f.backlog[1:]
	deliver()
	return true
}

// Heal reconnects the follower to the leader. Its clients get the events that they missed,
// and the writes and syncs that waited are executed.
func (f *Follower) Heal() {
	f.srv.mu.Lock()
	defer f.srv.mu.Unlock()
	known, cut := f.behind, f.cut
	f.behind, f.cut, f.late = nil, nil, false
	for _, deliver := range f.backlog {
		deliver()
	}
	f.backlog = nil
	if known != nil {
		f.catchUp(known)
	}
	if f.missed { // before the requests that waited
		f.missed = false
		f.report()
	}
	if cut != nil {
		close(cut)
	}
}

// report extends the sessions whose clients have sent something since the last report.
func (f *Follower) report() {
	for sess := range f.heard {
		sess.touch()
	}
	clear(f.heard)
}

// catchUp fires the watches that were set while the follower lagged, if the leader had
// already changed their znodes.
func (f *Follower) catchUp(known *tree) {
	for _, c := range f.srv.connections() {
		if c.follower != f {
			continue
		}
		missed := watchList{relativeZxid: known.zxid}
		for _, path := range slices.Sorted(maps.Keys(f.srv.dataWatches.byConn[c])) {
			if !f.srv.dataWatches.remove(path, c, watchStandard) {
				continue
			}
			if known.get(path) != nil {
				missed.data = append(missed.data, path)
			} else {
				missed.exist = append(missed.exist, path)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(f.srv.childWatches.byConn[c])) {
			if f.srv.childWatches.remove(path, c, watchStandard) {
				missed.child = append(missed.child, path)
			}
		}
		f.srv.rearm(c, missed)
	}
}

// known returns the state that reads of the connection return.
func (c *conn) known() *tree {
	if c.follower != nil && c.follower.behind != nil {
		return c.follower.behind
	}
	return c.srv.tree
}

// pipeline returns the queue for requests of the connection's session. Each server has its
// own.
func (c *conn) pipeline() *queue {
	if c.follower == nil {
		return &c.sess.queue
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	q := c.follower.queues[c.sess]
	if q == nil {
		q = new(queue)
		c.follower.queues[c.sess] = q
	}
	return q
}

// touch extends the session of a connection, for a follower at its next report. If the server
// logs pings, a follower has nothing to report: what it forwards extends the session.
func (c *conn) touch() {
	switch {
	case c.follower == nil:
		c.sess.touch()
	case len(c.srv.profile.logged) == 0:
		c.follower.heard[c.sess] = struct{}{}
	}
}

// behind reports whether the connection is to a follower that is cut off.
func (c *conn) behind() bool { return c.follower != nil && c.follower.cut != nil }

// later delivers a change of the leader to the client of a connection: at once, or when
// its follower is reconnected.
func (c *conn) later(deliver func()) {
	if c.behind() {
		c.follower.backlog = append(c.follower.backlog, deliver)
	} else {
		deliver()
	}
}

// waits returns the channel that a request must wait for, or nil. A request for the leader
// waits while the follower is cut off.
func (c *conn) waits(op Op) <-chan struct{} {
	if !c.srv.profile.forLeader(op) {
		return nil
	}
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if !c.behind() {
		return nil
	}
	return c.follower.cut
}

// forLeader reports whether a follower forwards such requests to the leader.
func (p *profile) forLeader(op Op) bool {
	return op.writes() || op == OpSync || op == OpCloseSession || slices.Contains(p.logged, op)
}

// pollFollowers makes those followers report whose poll is due. It returns the time of the next
// poll, or the zero time if there is no follower.
func (s *Server) pollFollowers(now time.Time) (next time.Time) {
	for _, f := range s.followers {
		for !now.Before(f.pollAt) {
			f.pollAt = f.pollAt.Add(s.cfg.TickTime / 2)
			if f.cut != nil {
				f.missed = true
				continue
			}
			f.report()
		}
		if next.IsZero() || f.pollAt.Before(next) {
			next = f.pollAt
		}
	}
	return next
}

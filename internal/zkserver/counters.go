package zkserver

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Counters count from the creation of the server.
type Counters struct {
	Requests    map[Op]int64 // executed requests by type, without pings; unknown types count as 0
	Reads       int64        // requests that change nothing, without sync, auth and setWatches
	Writes      int64        // requests that use a transaction id, failed ones included
	Pings       int64
	WatchEvents int64
	BytesIn     int64 // packets received, with their length fields
	BytesOut    int64 // packets queued for sending, with their length fields
	Connections int64
}

// Sub returns the counts since o was taken.
func (c Counters) Sub(o Counters) Counters {
	d := Counters{
		Requests:    make(map[Op]int64),
		Reads:       c.Reads - o.Reads,
		Writes:      c.Writes - o.Writes,
		Pings:       c.Pings - o.Pings,
		WatchEvents: c.WatchEvents - o.WatchEvents,
		BytesIn:     c.BytesIn - o.BytesIn,
		BytesOut:    c.BytesOut - o.BytesOut,
		Connections: c.Connections - o.Connections,
	}
	for op, n := range c.Requests {
		if n != o.Requests[op] {
			d.Requests[op] = n - o.Requests[op]
		}
	}
	return d
}

// traffic is counted outside the server's mutex.
type traffic struct {
	in, out        atomic.Int64 // bytes
	received, sent atomic.Int64 // packets
}

func (s *Server) count(op Op) {
	if op == OpPing {
		s.counters.Pings++
		return
	}
	if !known(op) {
		op = 0 // so that a client cannot fill the map
	}
	s.counters.Requests[op]++
	switch {
	case op.writes():
		s.counters.Writes++
	case op == OpSync, op == OpAuth, op == OpSetWatches, op == OpSetWatches2:
		// The Stats of a session leave them out too. go-zookeeper also sends setWatches
		// on its first connection, if a watch was requested before it was connected.
	default:
		s.counters.Reads++
	}
}

// Counters returns a copy of the counters.
func (s *Server) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counters
	c.Requests = maps.Clone(c.Requests)
	c.BytesIn, c.BytesOut = s.traffic.in.Load(), s.traffic.out.Load()
	return c
}

// Sessions returns the ids of the live sessions, sorted.
func (s *Server) Sessions() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.sessions))
}

// Tree returns every znode, sorted by path, including those below /zookeeper.
func (s *Server) Tree() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tree.dump()
}

// Watches returns the number of armed watches.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dataWatches.n + s.childWatches.n
}

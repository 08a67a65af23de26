package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
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

// CreationWatches returns the number of watches on znodes that do not exist.
func (s *Server) CreationWatches() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, conns := range s.dataWatches.byPath {
		if s.tree.nodes[path] == nil {
			n += len(conns)
		}
	}
	return n
}

// word answers a four-letter word. A client sends it in place of the length of the first
// packet. Read as a length, each word is far too large, so there is no ambiguity.
func (s *Server) word(w string) (string, bool) {
	switch w {
	case "ruok", "srvr", "mntr":
	default:
		return "", false
	}
	if !s.lockThawed() {
		return "", true
	}
	defer s.mu.Unlock()
	switch w {
	case "ruok":
		return "imok", true
	case "srvr":
		return s.srvr(), true
	default:
		return s.mntr(), true
	}
}

// version is the version that srvr and mntr report.
func (s *Server) version() string { return s.profile.version + "-zkrecipes-embedded" }

func (s *Server) srvr() string {
	var b strings.Builder
	if s.profile.keeper {
		fmt.Fprintf(&b, "ClickHouse Keeper version: v%s\n", s.version())
	} else {
		fmt.Fprintf(&b, "Zookeeper version: %s\n", s.version())
	}
	fmt.Fprintf(&b, "Latency min/avg/max: 0/0.0/0\n")
	fmt.Fprintf(&b, "Received: %d\n", s.traffic.received.Load())
	fmt.Fprintf(&b, "Sent: %d\n", s.traffic.sent.Load())
	fmt.Fprintf(&b, "Connections: %d\n", len(s.conns))
	fmt.Fprintf(&b, "Outstanding: 0\n")
	fmt.Fprintf(&b, "Zxid: 0x%x\n", s.tree.zxid)
	fmt.Fprintf(&b, "Mode: standalone\n")
	fmt.Fprintf(&b, "Node count: %d\n", s.znodeCount())
	return b.String()
}

// znodeCount counts the root twice: ZooKeeper stores it under two paths.
func (s *Server) znodeCount() int { return len(s.tree.nodes) + 1 }

func (s *Server) mntr() string {
	ephemerals, bytes := 0, 0
	for _, set := range s.tree.ephemerals {
		ephemerals += set.len()
	}
	for path, n := range s.tree.nodes {
		bytes += len(path) + len(n.data)
	}
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "zk_%s\t%v\n", key, value) }
	line("version", s.version())
	line("server_state", "standalone")
	line("ephemerals_count", ephemerals)
	line("num_alive_connections", len(s.conns))
	line("avg_latency", "0.0")
	line("min_latency", 0)
	line("max_latency", 0)
	line("outstanding_requests", 0)
	line("znode_count", s.znodeCount())
	line("packets_sent", s.traffic.sent.Load())
	line("packets_received", s.traffic.received.Load())
	line("watch_count", s.dataWatches.n+s.childWatches.n)
	line("approximate_data_size", bytes)
	switch {
	case s.profile.keeper:
		line("key_arena_size", 0)
		line("latest_snapshot_size", 0)
	case s.profile.answers > Release34:
		line("global_sessions", len(s.sessions))
		line("local_sessions", 0)
		line("bytes_received_count", s.traffic.in.Load())
		line("uptime", time.Since(s.started).Milliseconds())
	}
	return b.String()
}

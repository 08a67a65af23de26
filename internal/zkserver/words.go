package zkserver

import (
	"fmt"
	"strings"
	"time"
)

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

func (s *Server) srvr() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s\n", s.cfg.Like.version())
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
	line("version", s.cfg.Like.version())
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
	if s.cfg.Like > Release34 {
		line("global_sessions", len(s.sessions))
		line("local_sessions", 0)
		line("bytes_received_count", s.traffic.in.Load())
		line("uptime", time.Since(s.started).Milliseconds())
	}
	return b.String()
}

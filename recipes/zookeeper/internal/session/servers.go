package session

import (
	"net"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// membershipPath is the znode in which servers since ZooKeeper 3.5 keep the ensemble's members.
const membershipPath = "/zookeeper/config"

// followServers uses the ensemble's members as the session's servers, until the session ends.
func (s *Session) followServers() {
	for connection := 0; ; {
		n, lost, err := s.connectedAfter(s.ctx, connection)
		if err != nil {
			return
		}
		if s.wire.Keeper() {
			s.log.Warn("the servers of the ensemble cannot be followed: ClickHouse Keeper keeps no client ports")
			return
		}
		node, err := ask(s.ctx, s, "read", membershipPath, conn.Get(membershipPath, true), conn.Reply.Node)
		switch {
		case s.Err() != nil:
			return
		case err != nil: // before ZooKeeper 3.5, or without the permission
			s.log.Warn("the servers of the ensemble cannot be followed", "error", err)
			return
		}
		if servers := members(string(node.Data), s.wire.Servers, s.wire.TLS != nil); len(servers) > 0 {
			s.wire.SetServers(servers)
			s.log.Debug("the servers of the ensemble", "servers", servers)
		}
		select {
		case <-s.reconfigured:
		case <-lost:
			connection = n
		case <-s.Done():
			return
		}
	}
}

// members returns the addresses of the servers in a configuration of ZooKeeper, which has lines such
// as
//
//	server.1=zk1:2888:3888:participant;0.0.0.0:2181
//
// A server without a client port, or with TLS, whose port is not there, has the port of given, if
// those have the same.
func members(config string, given []string, secured bool) (servers []string) {
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.HasPrefix(key, "server.") {
			continue
		}
		quorum, client, _ := strings.Cut(value, ";")
		var hosts []string
		for address := range strings.SplitSeq(quorum, "|") { // several networks, since ZooKeeper 3.6
			hosts = append(hosts, host(address))
		}
		port := client
		if address, after, found := cutLast(client, ":"); found {
			if ip := net.ParseIP(host(address)); ip == nil || !ip.IsUnspecified() {
				hosts = []string{host(address)}
			}
			port = after
		}
		if port == "" || secured {
			port = commonPort(given)
		}
		for _, host := range hosts {
			if host != "" && port != "" {
				servers = append(servers, net.JoinHostPort(host, port))
			}
		}
	}
	return servers
}

// host returns what is before the first colon, or in brackets.
func host(address string) string {
	if rest, bracketed := strings.CutPrefix(address, "["); bracketed {
		address, _, _ = strings.Cut(rest, "]")
		return address
	}
	address, _, _ = strings.Cut(address, ":")
	return address
}

func cutLast(s, sep string) (before, after string, found bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

// commonPort returns the port of all addresses, or "".
func commonPort(addresses []string) string {
	var ports []string
	for _, address := range addresses {
		_, port, _ := net.SplitHostPort(address)
		ports = append(ports, port)
	}
	if ports = slices.Compact(ports); len(ports) == 1 {
		return ports[0]
	}
	return ""
}

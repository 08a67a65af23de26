package recipes

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ParseConnectString splits a ZooKeeper connect string, such as "h1:2181,h2:2181/app", into
// SessionConfig's Servers and Chroot. The chroot follows the last server. chroot is "" if the
// string has none, or "/". White space around a server is ignored. The error matches
// ErrInvalid.
func ParseConnectString(connect string) (servers []string, chroot string, err error) {
	list, path, found := strings.Cut(connect, "/")
	if found {
		chroot = "/" + path
	}
	if strings.TrimSpace(list) != "" {
		for server := range strings.SplitSeq(list, ",") {
			servers = append(servers, strings.TrimSpace(server))
		}
	}
	// ZooKeeper's own client would take all that follows the first slash for the chroot.
	if first, rest, more := strings.Cut(chroot, ","); more {
		return nil, "", fmt.Errorf("%w: connect string %q: %q follows the chroot %s; the chroot follows the last server", ErrInvalid, connect, rest, first)
	}
	cfg, err := SessionConfig{Servers: servers, Chroot: strings.TrimSpace(chroot)}.Normalize()
	if err != nil {
		return nil, "", fmt.Errorf("connect string %q: %w", connect, err)
	}
	return servers, cfg.Chroot, nil
}

// address adds the default port to an address without one.
func address(s string) (string, error) {
	if s == "" {
		return "", fmt.Errorf("is empty; give host:port")
	}
	if server, chroot, found := strings.Cut(s, "/"); found && server != "" && chroot != "" && chroot[0] != '/' {
		return "", fmt.Errorf("%q is not host:port: set Chroot to /%s, or use ParseConnectString", s, chroot)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// No port: "host", "10.0.0.1", "[::1]" or a bare "::1".
		host, port = s, defaultPort
		if bare, ok := strings.CutPrefix(s, "["); ok {
			host = strings.TrimSuffix(bare, "]")
		}
		if strings.Contains(host, ":") {
			if _, err := netip.ParseAddr(host); err != nil || host != s && s != "["+host+"]" {
				return "", fmt.Errorf("%q is not host:port; an IPv6 address with a port needs brackets, as in [::1]:2181", s)
			}
			if first, last, ambiguous := endsLikeAPort(s); ambiguous {
				return "", fmt.Errorf("%q is ambiguous: give [%s]:%s, or [%s] for the default port", s, first, last, s)
			}
		}
	}
	if host == "" || strings.ContainsAny(host, "/ ,") {
		return "", fmt.Errorf("%q is not host:port", s)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", fmt.Errorf("%q: port %q is not a port number", s, port)
	}
	return net.JoinHostPort(host, port), nil
}

// endsLikeAPort reports whether the last group of a bare IPv6 address can be a port that
// follows another address.
func endsLikeAPort(bare string) (address, port string, ambiguous bool) {
	at := strings.LastIndexByte(bare, ':')
	address, port = bare[:at], bare[at+1:]
	_, notAddress := netip.ParseAddr(address)
	return address, port, notAddress == nil && port != "" && strings.Trim(port, "0123456789") == ""
}

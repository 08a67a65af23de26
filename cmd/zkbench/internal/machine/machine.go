// Package machine has what this machine offers to sessions and to servers: open files, ports,
// memory, its disk and its processors.
package machine

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
)

// Machine holds the resources that this machine and this process offer to sessions. 0 means
// unknown.
type Machine struct {
	Files   int    // open files that the process may have
	Ports   int    // local ports for connections to one address
	Memory  int64  // available bytes
	Limited string // names the limit on memory, if it is not the machine's own

	Resolve func(host string) ([]string, error) // returns the addresses of a name
}

// Addresses returns how many different addresses the servers have. A name may have several, over
// which sessions spread, and two names may have the same. A name that cannot be resolved counts
// as one.
func (m Machine) Addresses(servers []string) int {
	distinct := map[string]bool{}
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		found, err2 := m.Resolve(host)
		if err != nil || err2 != nil {
			distinct[server] = true
			continue
		}
		for _, ip := range found {
			distinct[net.JoinHostPort(ip, port)] = true
		}
	}
	return len(distinct)
}

// lookupTime limits the lookup of a server's addresses.
const lookupTime = 2 * time.Second

func lookup(host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	return net.DefaultResolver.LookupHost(ctx, host)
}

// This returns the resources of this machine.
func This() Machine {
	m := Machine{Resolve: lookup}
	m.Files, _ = mostOpenFiles()
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil {
			m.Ports = last - first + 1
		}
	}
	var kib int64
	if _, err := fmt.Sscan(Memory("MemAvailable"), &kib); err == nil {
		m.Memory = kib << 10
	}
	if left, ok := cgroupMemory("/"); ok && (m.Memory == 0 || left < m.Memory) {
		m.Memory, m.Limited = max(1, left), " under the limit of this process's control group"
	}
	return m
}

// Memory returns a figure of /proc/meminfo, with its unit; "" on other systems.
func Memory(figure string) string {
	text, _ := os.ReadFile("/proc/meminfo")
	return fourletter.Pairs(string(text), ":")[figure]
}

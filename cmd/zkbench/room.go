package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ownFiles is an upper bound of the files that zkbench has open besides its sessions.
const ownFiles = 100

// openFiles is how many files the experiment needs at once in this process. A session needs one
// file. An embedded server needs another one for it, a relay two, and the relay of a failover
// or of -fault holder three, because it listens for that session only. The plugin or the relay process needs as
// many.
func (s settings) openFiles() int {
	each := 1
	if s.inside() {
		each++
	}
	switch {
	case s.cutsOff():
		each += 3
	case slices.Max(s.Delays) > 0:
		each += 2
	}
	if slices.Contains(s.via, byRelay) { // the relay process needs two
		each = max(each, 2)
	}
	return s.connections()*each + ownFiles
}

// fits returns a usageError if this machine is too small for the experiment. It names what is
// missing.
func (s settings) fits() error { return s.fitsInto(thisMachine()) }

func (s settings) fitsInto(m machine) error {
	sessions := s.connections()
	var lacks []string
	if needed := s.openFiles(); m.files > 0 && needed > m.files {
		lacks = append(lacks, fmt.Sprintf("%d sessions need %d open files, and this process may have %d; raise the limit (ulimit -n, LimitNOFILE= of systemd) by %d",
			sessions, needed, m.files, needed-m.files))
	}
	servers := max(1, s.ensemble, m.addresses(s.servers))
	if most := m.ports * servers; m.ports > 0 && sessions > most {
		lacks = append(lacks, fmt.Sprintf("%d sessions need as many ports, and this machine has %d for each of %d addresses of servers; widen net.ipv4.ip_local_port_range by %d",
			sessions, m.ports, servers, (sessions-most+servers-1)/servers))
	}
	if needed := int64(sessions) * s.sessionMemory(); m.memory > 0 && needed > m.memory {
		lacks = append(lacks, fmt.Sprintf("%d sessions need about %d MiB of memory, and %d MiB are available%s: %d MiB are missing",
			sessions, needed>>20, m.memory>>20, m.limited, (needed-m.memory)>>20+1))
	}
	if len(lacks) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s; or use fewer -contenders, or spread them over machines with -join", strings.Join(lacks, "; "))}
}

// sessionMemory is how much memory a session with its contender needs in all processes of this
// machine, in bytes. It is more than was measured, to allow for garbage.
func (s settings) sessionMemory() int64 {
	each := int64(64 << 10)
	if s.inside() {
		each += 32 << 10
	}
	if slices.Contains(s.via, plugin) || slices.Contains(s.via, inprocess) {
		each += 96 << 10
	}
	if s.cutsOff() || slices.Max(s.Delays) > 0 {
		each += 64 << 10
	}
	return each
}

// machine is what this machine and this process have for sessions. 0 means unknown.
type machine struct {
	files   int    // open files that the process may have
	ports   int    // local ports for connections to one address
	memory  int64  // available bytes
	limited string // names the limit on memory, if it is not the machine's own

	resolve func(host string) ([]string, error)
}

// addresses returns how many different addresses the servers have. A name may have several, over
// which sessions spread, and two names may have the same. A name that cannot be resolved counts
// as one.
func (m machine) addresses(servers []string) int {
	distinct := map[string]bool{}
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		found, err2 := m.resolve(host)
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

func thisMachine() machine {
	m := machine{resolve: lookup}
	m.files, _ = mostOpenFiles()
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(text), &first, &last); err == nil {
			m.ports = last - first + 1
		}
	}
	var kib int64
	if _, err := fmt.Sscan(memory("MemAvailable"), &kib); err == nil {
		m.memory = kib << 10
	}
	if left, ok := cgroupMemory("/"); ok && (m.memory == 0 || left < m.memory) {
		m.memory, m.limited = max(1, left), " under the limit of this process's control group"
	}
	return m
}

// cgroupMemory returns how many bytes this process may still use under the limits of its control
// groups, of version 1 and 2, and of all groups above them. Inactive pages of files count as
// free. ok is false if no group has a limit. root is "/" except in tests.
func cgroupMemory(root string) (left int64, ok bool) {
	file, err := os.Open(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		id, rest, _ := strings.Cut(lines.Text(), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		v, known := version2, id == "0" && controllers == ""
		if strings.Contains(","+controllers+",", ",memory,") {
			v, known = version1, true
		}
		if !known {
			continue
		}
		for _, dir := range groups(filepath.Join(root, v.mount), path) {
			if n, limited := v.left(dir); limited && (!ok || n < left) {
				left, ok = n, true
			}
		}
	}
	return left, ok
}

// groups returns the directories of a group and of those above it. In a container the path may be
// the host's and not exist. The container's own group is then the root of the mount, which is
// always among them.
func groups(mount, path string) (dirs []string) {
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		dirs = append(dirs, filepath.Join(mount, path))
		if path == "/" {
			return dirs
		}
	}
}

type hierarchy struct{ mount, limit, used, unused string }

var (
	version1 = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
	version2 = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
)

// noLimit is a bound for "no limit" in version 1, which is the largest number of pages.
const noLimit = 1 << 62

func (h hierarchy) left(dir string) (int64, bool) {
	limit, ok := number(filepath.Join(dir, h.limit))
	if !ok || limit >= noLimit {
		return 0, false
	}
	used, _ := number(filepath.Join(dir, h.used))
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	unused, _ := strconv.ParseInt(pairs(string(stat), " ")[h.unused], 10, 64)
	return max(0, limit-max(0, used-unused)), true
}

// number reads a file with one number. ok is false for "max".
func number(file string) (n int64, ok bool) {
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = fmt.Sscan(string(text), &n)
	}
	return n, err == nil
}

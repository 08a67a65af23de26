// Package machine has what this machine offers to sessions and to servers: open files, ports,
// memory, its disk and its processors.
package machine

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

// Disk returns facts about the disk of dir, the directory in which a server on this machine
// writes its log.
func Disk(dir string) map[string]string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	facts := map[string]string{"disk": filesystem(dir)}
	if cost, err := fsyncCost(dir); err == nil {
		facts["fsync"] = cost.Round(time.Microsecond).String() + " for a block of 512 bytes, median"
	}
	return facts
}

// fsyncCost returns the median time to append a small block to a file in dir and sync it to the
// disk. Each write of a server there takes at least that long.
func fsyncCost(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "zkbench-fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(filepath.Clean(f.Name()))
	defer f.Close()
	const times = 21
	costs := make([]time.Duration, times)
	for i := range costs {
		start := time.Now()
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		costs[i] = time.Since(start)
	}
	slices.Sort(costs)
	return costs[times/2], nil
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
// one of the host's, which does not exist there. The container's own group is then the root of the
// mount, which is always among them.
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
	unused, _ := strconv.ParseInt(fourletter.Pairs(string(stat), " ")[h.unused], 10, 64)
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

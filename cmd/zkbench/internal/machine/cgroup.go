package machine

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
)

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

package main

import (
	"os"
	"path/filepath"
	"strings"
)

// filesystem describes what dir lies on, such as "ext4 on /dev/sda1"; "" if that
// cannot be found out.
func filesystem(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return ""
	}
	return mountOf(string(mounts), dir)
}

// mountOf returns the file system of the mount that dir lies in; see fstab(5). A
// later mount hides an earlier one of the same place.
func mountOf(mounts, dir string) string {
	longest, found := -1, ""
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := strings.ReplaceAll(fields[1], `\040`, " ")
		inside := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest {
			longest, found = len(point), fields[2]+" on "+fields[0]
		}
	}
	return found
}

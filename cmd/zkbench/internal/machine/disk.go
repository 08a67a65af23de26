package machine

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

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

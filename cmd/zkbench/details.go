package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// environment describes this process, this machine and the servers.
func environment(ctx context.Context, srv server, args []string) record.Environment {
	env := record.Here(srv.about)
	env.Details = map[string]string{
		"go": runtime.Version(), "cpus": strconv.Itoa(runtime.NumCPU()),
		"gomaxprocs": strconv.Itoa(runtime.GOMAXPROCS(0)),
		"flags":      strings.Join(args, " "),
		"started":    time.Now().UTC().Format(time.RFC3339),
	}
	if memory := memory("MemTotal:"); memory != "" {
		env.Details["memory"] = memory
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				env.Details[s.Key] = s.Value
			}
		}
	}
	srv.serverFacts(ctx, env.Details)
	return env
}

// memory is a figure of the machine's memory, as Linux writes it; "" elsewhere.
func memory(figure string) string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, figure); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fsyncCost returns how long it takes in dir to append a small block to a file and have
// it on the disk, in the median. Every write of a server there costs at least that.
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

package main

import (
	"cmp"
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

func environment(ctx context.Context, srv server, args []string) record.Environment {
	env := srv.about.Environment()
	env.Details = map[string]string{
		"go": runtime.Version(), "cpus": strconv.Itoa(runtime.NumCPU()),
		"gomaxprocs": strconv.Itoa(runtime.GOMAXPROCS(0)),
		"flags":      strings.Join(args, " "),
		"started":    time.Now().UTC().Format(time.RFC3339),
	}
	if memory := memory("MemTotal"); memory != "" {
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

// memory returns a figure of /proc/meminfo, with its unit; "" on other systems.
func memory(figure string) string {
	text, _ := os.ReadFile("/proc/meminfo")
	return pairs(string(text), ":")[figure]
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

// notKnown is the value of a fact that the servers do not report.
const notKnown = "not known: the servers do not report it"

// reported are the facts in the replies to conf and envi, by their names there. Paths and ports
// are left out, because they do not influence speed.
var reported = []string{
	"tickTime", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "initLimit", "syncLimit",
	"java.version", "java.vendor", "jute.maxbuffer", "os.name", "os.arch", "os.memory.max",
}

// unreported are facts that a server does not report. They are known for servers that were
// started for the run, and named as missing for others.
var unreported = []string{"forceSync", "caches", "processors", "memory", "disk", "fsync"}

// serverFacts adds the known facts about the servers to details. It names the unknown ones too,
// so that a reader does not assume that they are equal in two sets of results.
func (s server) serverFacts(ctx context.Context, details map[string]string) {
	add := func(name, value string) {
		if _, ok := details["server "+name]; !ok && value != "" {
			details["server "+name] = value
		}
	}
	for name, value := range s.facts {
		add(name, value)
	}
	for _, addr := range s.words.addrs {
		conf, err := s.words.ask(ctx, addr, "conf")
		if err != nil {
			continue
		}
		envi, _ := s.words.ask(ctx, addr, "envi")
		said := pairs(conf+envi, "=")
		for _, name := range reported {
			add(name, said[name])
		}
		if s.ensemble != nil {
			for name, value := range diskFacts(cmp.Or(said["dataLogDir"], said["dataDir"])) {
				add(name, value)
			}
		}
		break
	}
	if s.about.Servers == 1 {
		add("initLimit", "none: it is alone")
		add("syncLimit", "none: it is alone")
	}
	for _, name := range append(slices.Clone(reported), unreported...) {
		add(name, notKnown)
	}
}

// diskFacts returns facts about the disk of dir, the directory in which a server on this machine
// writes its log.
func diskFacts(dir string) map[string]string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	facts := map[string]string{"disk": filesystem(dir)}
	if cost, err := fsyncCost(dir); err == nil {
		facts["fsync"] = cost.Round(time.Microsecond).String() + " for a block of 512 bytes, median"
	}
	return facts
}

// Package record keeps what trials measured. [JSONWriter] and [Read] are its file
// format. [Writer] writes the Go benchmark format, for benchstat and other programs.
//
// A [Record] is complete (whole histograms, all counters); a rendering is a view
// of it. [Record.Metrics] is the one place where figures are derived.
package record

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Record is what one trial measured, and of what.
type Record struct {
	Recipe     load.Recipe
	Workload   load.Workload
	Strategy   recipes.Strategy
	Contenders int
	Transport  string        // how the recipes were reached: "direct", "plugin", ...
	Hold       time.Duration // for how long each holder kept its turn
	Procs      int           // GOMAXPROCS

	// Lines is how many lines of so many contenders there were at once; 0 for
	// workloads that have one.
	Lines int `json:",omitempty"`
	// Rate is the acquisitions a second of an open load, and Arrivals how they
	// came; 0 and "" for others.
	Rate     float64       `json:",omitempty"`
	Arrivals load.Arrivals `json:",omitempty"`
	// Workers is how many processes the contenders, or the lines, were spread
	// over, if they had to meet for it; 0 for one process by itself.
	Workers int `json:",omitempty"`
	// Delay is the round-trip time that a relay added to what every session sends and
	// gets, beside what the network took; 0 for none. The relay is in this process. So
	// Memory and Client count it too.
	Delay time.Duration `json:",omitempty"`

	// Trial is the trial's number in its run, from 1.
	Trial int `json:",omitempty"`
	// Invalid says why the trial says more about the load generator than about
	// what it loaded; empty if it does not.
	Invalid []string `json:",omitempty"`

	load.Measurement
	Memory Memory
	Client Client
	// Server is by how much the server's own figures grew in the measured part,
	// by the server's names; nil if there were none to read.
	Server map[string]float64 `json:",omitempty"`
	// Missing names the figures that were asked for and that the servers do
	// not have.
	Missing []string `json:",omitempty"`
}

// Valid reports whether the trial may be compared with others.
func (r Record) Valid() bool { return len(r.Invalid) == 0 }

// Client is what the measured part took of this process.
type Client struct {
	// Took is for how long it was looked at: Elapsed, and the coming to rest after
	// it. 0 in records of before this was kept.
	Took time.Duration `json:",omitempty"`
	CPU  time.Duration // user and system time; 0 where it cannot be found out
	// Other is the same of the other processes that the sessions go through, 0
	// without such processes. nil where it cannot be found out.
	Other    *time.Duration `json:",omitempty"`
	GC       time.Duration  // pauses of the garbage collector, all together
	LongGC   time.Duration  // the longest of them, as far as the runtime's buckets tell
	SchedP99 time.Duration  // 99th percentile of how long runnable goroutines waited
	Allocs   uint64         // bytes
}

// Memory is what the trial took, in bytes, when everybody had enrolled.
type Memory struct {
	// RSS is the resident memory of the processes that the sessions live in: a
	// server that is embedded in one of them included.
	RSS int64
	// Session is by how much the heap and the stacks of this process grew for
	// each session, after a garbage collection. It is 0 where that cannot be
	// said: for sessions in another process.
	Session int64
}

// Name is the benchmark's name as `go test` would print it, without the word
// Benchmark: what was varied, each with its key, and GOMAXPROCS.
//
// A name that ends in a hyphen and digits is taken for having a GOMAXPROCS, so
// what could end like that (the hold) is not put last.
func (r Record) Name() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/workload=%s", capitalized(string(r.Recipe)), r.Workload)
	if r.Strategy != "" {
		fmt.Fprintf(&b, "/strategy=%s", r.Strategy)
	}
	fmt.Fprintf(&b, "/contenders=%d", r.Contenders)
	if r.Lines > 0 {
		fmt.Fprintf(&b, "/lines=%d", r.Lines)
	}
	if r.Rate > 0 {
		fmt.Fprintf(&b, "/rate=%g/arrivals=%s", r.Rate, r.Arrivals)
	}
	if r.Workers > 0 {
		fmt.Fprintf(&b, "/workers=%d", r.Workers)
	}
	if r.Delay > 0 {
		fmt.Fprintf(&b, "/delay=%s", typed(r.Delay))
	}
	if r.Hold > 0 {
		fmt.Fprintf(&b, "/hold=%s", typed(r.Hold))
	}
	fmt.Fprintf(&b, "/via=%s", r.Transport)
	if r.Procs > 1 {
		fmt.Fprintf(&b, "-%d", r.Procs)
	}
	return b.String()
}

// typed is a time as one can type it: nobody wants to type a µ to filter by it.
func typed(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// capitalized makes a benchmark name of s: what follows Benchmark must not be
// lower case.
func capitalized(s string) string {
	first := []rune(s)
	if len(first) > 0 {
		first[0] = unicode.ToUpper(first[0])
	}
	return string(first)
}

// Environment is what all records of a run have in common. It has nothing that
// differs between two runs of the same thing (ports, times, seeds): benchstat
// keeps results of different configurations in different tables.
type Environment struct {
	OS, Arch string
	Package  string
	CPU      string // "" where it cannot be found out
	Server   Server
	// Details are facts that are kept with the records but are no part of the
	// benchmark format, because they may differ between runs of the same thing:
	// Go's version, memory, the flags, what an fsync costs, the servers'
	// configuration.
	Details map[string]string `json:",omitempty"`
}

// Server describes what the contenders talked to.
type Server struct {
	Version string // such as "3.8.0"; "" if it does not tell
	Servers int    // how many there are, not where
	Mode    string // "embedded", "standalone" or "ensemble"; "" if it is not known
}

// Here returns the environment of this process against that server.
func Here(server Server) Environment {
	return Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpu(), Server: server,
		Package: "github.com/zkrecipes/zkrecipes/bench",
	}
}

func (e Environment) config() []benchfmt.Config {
	var config []benchfmt.Config
	for _, c := range []struct{ key, value string }{
		{"goos", e.OS}, {"goarch", e.Arch}, {"pkg", e.Package}, {"cpu", e.CPU},
		{"zk-version", e.Server.Version},
		{"zk-servers", strconv.Itoa(e.Server.Servers)},
		{"zk-mode", e.Server.Mode},
	} {
		if c.value != "" {
			config = append(config, benchfmt.Config{Key: c.key, Value: []byte(c.value), File: true})
		}
	}
	return config
}

// Package record holds the results of trials. [JSONWriter] and [Read] implement its file
// format. [Writer] writes the Go benchmark format, for benchstat and other programs.
//
// A [Record] is complete: it has whole histograms and all counters. [Record.Metrics] is the
// only place that derives figures from it.
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
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Record is the result of one trial, with its settings.
type Record struct {
	Recipe     load.Recipe
	Workload   load.Workload
	Strategy   recipes.Strategy
	Contenders int
	Transport  string        // how the recipes were reached: "direct", "plugin", ...
	Hold       time.Duration // how long each holder kept its grant
	Procs      int           // GOMAXPROCS

	// Lines is how many lines ran at once, each with that many contenders; 0 for
	// workloads of a single line.
	Lines int `json:",omitempty"`
	// Rate is the number of acquisitions that arrive per second in an open load, and
	// Arrivals is their distribution. For other loads they are 0 and "".
	Rate     float64       `json:",omitempty"`
	Arrivals load.Arrivals `json:",omitempty"`
	// Workers is how many processes shared the contenders or the lines; 0 for a process
	// that ran alone.
	Workers int `json:",omitempty"`
	// Delay is the round-trip time that a relay added to each session, beyond that of the
	// network; 0 for none. The relay runs in this process, so Memory and Client contain it.
	Delay time.Duration `json:",omitempty"`

	// Faults are those of a timeline; nil for others. They are for zkbench only.
	Faults []timeline.Fault `json:",omitempty"`

	// Trial is the trial's number in its run, from 1.
	Trial int `json:",omitempty"`
	// Invalid has the reasons why the load generator, and not the servers, was the limit.
	// It is empty for a valid trial.
	Invalid []string `json:",omitempty"`

	load.Measurement
	Memory Memory
	Client Client
	// Server is how much the server's own figures grew in the measured part, by the
	// server's names; nil if there were none.
	Server map[string]float64 `json:",omitempty"`
	// Missing names the wanted figures that the servers do not have.
	Missing []string `json:",omitempty"`
}

// Valid reports whether the trial may be compared with others.
func (r Record) Valid() bool { return len(r.Invalid) == 0 }

// Client is what this process used in the measured part.
type Client struct {
	// Took is how long the process was observed: Elapsed, and the time until all
	// contenders were at rest. It is 0 in records of older versions.
	Took time.Duration `json:",omitempty"`
	CPU  time.Duration // user and system time; 0 where it is not available
	// Other is the processor time of the other processes that the sessions go through: 0
	// without such processes, nil where it is not available.
	Other    *time.Duration `json:",omitempty"`
	GC       time.Duration  // pauses of the garbage collector, summed up
	LongGC   time.Duration  // the longest of them: the upper end of the runtime's bucket
	SchedP99 time.Duration  // 99th percentile of how long runnable goroutines waited
	Allocs   uint64         // bytes
}

// Memory is the memory of the trial, in bytes, when all contenders had joined.
type Memory struct {
	// RSS is the resident memory of the processes in which the sessions live. It contains
	// an embedded server.
	RSS int64
	// Session is how much the heap and the stacks of this process grew for each session,
	// after a garbage collection. It is 0 for sessions in another process.
	Session int64
}

// Name is the benchmark's name as `go test` would print it, without the word Benchmark:
// each setting with its key, and GOMAXPROCS.
//
// Tools read a hyphen and digits at the end as GOMAXPROCS, so a setting that can end like
// that (the hold) is not the last one.
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
	if len(r.Faults) > 0 {
		fmt.Fprintf(&b, "/faults=%s", timeline.Text(r.Faults))
	}
	fmt.Fprintf(&b, "/via=%s", r.Transport)
	if r.Procs > 1 {
		fmt.Fprintf(&b, "-%d", r.Procs)
	}
	return b.String()
}

// typed formats a time without µ, so that it is easy to type in a filter.
func typed(d time.Duration) string { return strings.Replace(d.String(), "µ", "u", 1) }

// capitalized returns s with an upper-case first letter, as benchmark names need.
func capitalized(s string) string {
	first := []rune(s)
	if len(first) > 0 {
		first[0] = unicode.ToUpper(first[0])
	}
	return string(first)
}

// Environment is what all records of a run have in common. Except for Details, it has
// nothing that differs between two runs of the same experiment (ports, times, seeds),
// because benchstat puts results of different configurations into different tables.
type Environment struct {
	OS, Arch string
	Package  string
	CPU      string // "" where it is not available
	Server   Server
	// Details are facts that may differ between runs of the same experiment: Go's
	// version, memory, the flags, the time of an fsync, the servers' configuration. They
	// are not written in the benchmark format.
	Details map[string]string `json:",omitempty"`
}

// Server describes the ZooKeeper of a run.
type Server struct {
	Version string // such as "3.8.0"; "" if unknown
	Servers int    // how many servers
	Mode    string // "embedded", "standalone" or "ensemble"; "" if unknown
}

// Environment returns the environment of this process with that server.
func (s Server) Environment() Environment {
	return Environment{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpu(), Server: s,
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

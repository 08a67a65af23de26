// Package report renders records as a self-contained HTML page, SVG figures, Markdown
// tables and HdrHistogram's percentile files.
//
//  1. [Group] the runs: one set for each group of lines that belong in one figure.
//  2. Get the [Figure]s of a set from [Figures].
//  3. Render: [HTML] for the page, [SVG], [Markdown], [Percentiles].
//
// Reports depend on the records alone: the same records give the same bytes.
package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchmath"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// Set is the records of one workload on one kind of server, made by one machine:
// lines of strategies over contenders.
type Set struct {
	Title       string
	Environment record.Environment
	Series      []Lines
	Invalid     []record.Record // in none of the lines
}

// Lines is the records of one strategy.
type Lines struct {
	Name   string
	Levels []Level // by contenders, ascending
}

// Level is the trials of one number of contenders.
type Level struct {
	Contenders int
	Trials     []record.Record
}

// Titled is the records with one title, and the run of the first of them.
type Titled struct {
	Title   string
	Run     record.Run
	Records []record.Record
}

// By groups the records of runs by their titles, in the order of their first records. It leaves
// out records with the title "".
func By(runs []record.Run, title func(record.Run, record.Record) string) (all []Titled) {
	for _, run := range runs {
		for _, r := range run.Records {
			t := title(run, r)
			if t == "" {
				continue
			}
			i := slices.IndexFunc(all, func(g Titled) bool { return g.Title == t })
			if i < 0 {
				i = len(all)
				all = append(all, Titled{Title: t, Run: run})
			}
			all[i].Records = append(all[i].Records, r)
		}
	}
	return all
}

// Group sorts the records of runs into sets, in the order of their first records.
func Group(runs []record.Run) (sets []Set) {
	machine := Machines(runs)
	for _, g := range By(runs, func(run record.Run, r record.Record) string {
		r.Strategy = ""
		return Title(r, run.Environment.Server) + machine(run, r)
	}) {
		s := Set{Title: g.Title, Environment: g.Run.Environment}
		for _, r := range g.Records {
			s.add(r)
		}
		sets = append(sets, s)
	}
	return sets
}

func (s *Set) add(r record.Record) {
	if !r.Valid() {
		s.Invalid = append(s.Invalid, r)
		return
	}
	name := cmp.Or(string(r.Strategy), string(r.Recipe))
	i := slices.IndexFunc(s.Series, func(l Lines) bool { return l.Name == name })
	if i < 0 {
		i = len(s.Series)
		s.Series = append(s.Series, Lines{Name: name})
	}
	s.Series[i].add(r)
	slices.SortStableFunc(s.Series, func(a, b Lines) int { return cmp.Compare(a.Name, b.Name) })
}

func (l *Lines) add(r record.Record) {
	i, found := slices.BinarySearchFunc(l.Levels, r.Contenders, func(level Level, n int) int { return level.Contenders - n })
	if !found {
		l.Levels = slices.Insert(l.Levels, i, Level{Contenders: r.Contenders})
	}
	l.Levels[i].Trials = append(l.Levels[i].Trials, r)
}

// Median is a median over trials with its confidence interval of 95 %.
type Median struct {
	Value    float64
	Lo, Hi   float64 // the value where there is no interval
	Interval bool
}

// leastTrials is how many trials an interval of 95 % needs: with five, the median lies
// outside the range of all of them with a probability of more than 5 %.
const leastTrials = 6

// Values returns the values of a unit, in the order of the trials that have it.
func (l Level) Values(unit string) (values []float64) {
	for _, r := range l.Trials {
		if v, ok := r.Metric(unit); ok {
			values = append(values, v)
		}
	}
	return values
}

// Median returns the median of a unit over the trials.
func (l Level) Median(unit string) (Median, bool) {
	values := l.Values(unit)
	if len(values) == 0 {
		return Median{}, false
	}
	of := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
	if len(values) < leastTrials {
		return Median{Value: of.Center, Lo: of.Center, Hi: of.Center}, true
	}
	return Median{of.Center, of.Lo, of.Hi, true}, true
}

// Cell returns the median of a unit for a table, or "-" if no trial has it.
func (l Level) Cell(of string) string {
	if m, ok := l.Median(of); ok {
		return unit.Quantity(of, m.Value)
	}
	return "-"
}

// at returns the level of n contenders. It has no trials if there is none.
func (l Lines) at(n int) Level {
	for _, level := range l.Levels {
		if level.Contenders == n {
			return level
		}
	}
	return Level{}
}

// Histogram merges the trials' times: waits for open loads and trials without handoffs,
// handoffs for others. It is nil without times.
func (l Level) Histogram() *hdrhistogram.Histogram {
	sum := histogram.New()
	for _, r := range l.Trials {
		h := r.Handoff
		if r.Workload == load.Open || h == nil || h.TotalCount() == 0 {
			h = r.Wait
		}
		if h != nil {
			sum.Merge(h)
		}
	}
	if sum.TotalCount() == 0 {
		return nil
	}
	return sum
}

// Machines returns a function that describes the machine of a record: its system, processor
// and GOMAXPROCS. Appended to a title, it keeps records of different machines apart. It
// returns "" if all records are from one machine.
func Machines(runs []record.Run) func(record.Run, record.Record) string {
	machine := func(run record.Run, r record.Record) string {
		e := run.Environment
		return fmt.Sprintf(", measured by %s/%s, %s, GOMAXPROCS %d", e.OS, e.Arch, e.CPU, r.Procs)
	}
	seen := map[string]bool{}
	for _, run := range runs {
		for _, r := range run.Records {
			seen[machine(run, r)] = true
		}
	}
	if len(seen) < 2 {
		return func(record.Run, record.Record) string { return "" }
	}
	return machine
}

// Title describes what trials that differ only in contenders have in common. For a record
// without a strategy it is the title for all strategies.
func Title(r record.Record, s record.Server) string {
	t := string(r.Workload)
	if !r.Workload.Own() {
		t = fmt.Sprintf("%s, %s", r.Recipe, r.Workload)
	}
	if r.Strategy != "" {
		t += fmt.Sprintf(", %s", r.Strategy)
	}
	t += ", " + through(r.Transport)
	if r.Hold > 0 {
		t += fmt.Sprintf(", hold %v", r.Hold)
	} else {
		t += ", no hold"
	}
	if r.Lines > 0 {
		t += ", " + english.Count(r.Lines, "line")
	}
	if r.Rate > 0 {
		t += fmt.Sprintf(", %g/s %s", r.Rate, r.Arrivals)
	}
	if len(r.Faults) > 0 {
		t += ", faults " + timeline.Text(r.Faults)
	}
	if r.Workers > 0 {
		t += ", " + english.Count(r.Workers, "worker")
	}
	if r.Delay > 0 {
		t += fmt.Sprintf(", %v added to each round trip (zkbench's processor time and memory include the relay's)", r.Delay)
	}
	return t + ", on " + Servers(s)
}

func through(transport string) string {
	switch transport {
	case "direct":
		return "through the library"
	case "inprocess":
		return "through gRPC in memory"
	case "relay":
		return "through a relay"
	case "plugin":
		return "through the plugin"
	}
	return "via " + transport
}

// Servers describes the servers in a few words.
func Servers(s record.Server) string {
	version := cmp.Or(s.Version, "of unknown version")
	if s.Mode == "embedded" {
		return fmt.Sprintf("the embedded server (%s)", version)
	}
	return english.Count(s.Servers, "ZooKeeper server") + " " + version
}

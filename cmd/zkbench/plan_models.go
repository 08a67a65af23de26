package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// fitted is a model with the servers of its trials.
type fitted struct {
	*plan.Model
	details   map[string]string // of the first run with such trials
	place     string            // the servers, in words
	servers   int
	embedded  bool
	transport string
	hold      time.Duration
}

// places groups models that can be compared: of the same servers, workload, transport and hold.
func places(models []fitted) [][]fitted {
	return alike(models, func(m fitted) string {
		return fmt.Sprintf("%s, %s, %s, %v", m.place, m.Workload, m.transport, m.hold)
	})
}

// alike groups models with the same key, in the order of the first of each group.
func alike(models []fitted, key func(fitted) string) (groups [][]fitted) {
	for _, m := range models {
		i := slices.IndexFunc(groups, func(g []fitted) bool { return key(g[0]) == key(m) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

func sweepCommand(m fitted, where string) string {
	switch {
	case where != "":
	case m.embedded:
		where = "-embedded"
	default:
		where = fmt.Sprintf("-ensemble %d", max(1, m.servers))
	}
	kind := string(cmp.Or(m.Workload, load.Drain))
	if m.hold > 0 {
		kind += fmt.Sprintf(" -hold %v", m.hold)
	}
	if m.transport != "" && m.transport != direct {
		kind += " -via " + m.transport
	}
	return fmt.Sprintf("zkbench sweep %s -recipe lock -workload %s -contenders 2..1000 -limit 20s -record more.jsonl", where, kind)
}

// models fits a model to each combination. skipped has an error for each that has too few
// levels.
func models(runs []record.Run, seed uint64) (models []fitted, skipped []error) {
	machine := report.Machines(runs)
	for _, g := range report.By(runs, func(run record.Run, r record.Record) string {
		if r.Workload != load.Drain && r.Workload != load.Cycle {
			return ""
		}
		r.Delay = 0 // a model has all delays
		return report.Title(r, run.Environment.Server) + machine(run, r)
	}) {
		first, server := g.Records[0], g.Run.Environment.Server
		f := fitted{
			details: g.Run.Environment.Details, place: report.Servers(server) + machine(g.Run, first), servers: server.Servers,
			embedded: server.Mode == "embedded", transport: first.Transport, hold: first.Hold,
		}
		var err error
		if f.Model, err = plan.Fit(g.Records, seed); err != nil {
			f.Model = &plan.Model{Workload: first.Workload}
			skipped = append(skipped, fmt.Errorf("%s: %w; such as by: %s", g.Title, err, sweepCommand(f, "")))
			continue
		}
		f.Name = g.Title
		models = append(models, f)
	}
	if len(models)+len(skipped) == 0 {
		skipped = append(skipped, fmt.Errorf("no trials of -workload drain or cycle in the records; make them with: %s",
			sweepCommand(fitted{Model: new(plan.Model)}, "")))
	}
	return models, skipped
}

// carried is the share of the highest throughput to plan with.
const carried = 0.7

// lines answers -line-rate for many locks: how many independent lines the servers carry, for
// each combination with trials of -workload many. It reports whether there was an answer.
func (s planSettings) lines(w io.Writer, runs []record.Run) bool {
	if s.lineRate == 0 {
		return true
	}
	machine := report.Machines(runs)
	groups := report.By(runs, func(run record.Run, r record.Record) string {
		if _, ok := r.Metric(unit.Handoffs); !ok || !r.Valid() || r.Workload != load.Many {
			return ""
		}
		r.Lines = 0
		return fmt.Sprintf("%d contenders each, %s", r.Contenders, report.Title(r, run.Environment.Server)+machine(run, r))
	})
	if len(groups) == 0 {
		fmt.Fprintln(w, "independent lines: refused: no valid trials of -workload many in the records; make them with: "+
			"zkbench run -ensemble 3 -workload many -recipe lock -contenders 5 -lines 20 -record many20.jsonl")
		return false
	}
	for _, g := range groups {
		levels := map[int]report.Level{} // by the number of lines
		for _, r := range g.Records {
			levels[r.Lines] = report.Level{Trials: append(levels[r.Lines].Trials, r)}
		}
		best, most := 0, slices.Max(slices.Collect(maps.Keys(levels)))
		var middle report.Median // handoffs a second of all lines together
		for _, n := range slices.Sorted(maps.Keys(levels)) {
			if m, _ := levels[n].Median(unit.Handoffs); best == 0 || m.Value > middle.Value {
				best, middle = n, m
			}
		}
		rates := levels[best].Values(unit.Handoffs)
		at := func(rate float64) int { return int(carried * rate / s.lineRate) }
		fmt.Fprintf(w, "independent lines of %v handoffs/s, %s: %d (%d to %d by the slowest and the fastest trial); %.0f%% of the %.4g handoffs/s that %d lines made\n",
			s.lineRate, g.Title, at(middle.Value), at(slices.Min(rates)), at(slices.Max(rates)), 100*carried, middle.Value, best)
		if best == most {
			fmt.Fprintf(w, "  warning: the largest number of lines had the highest throughput; the servers may carry more, which only a run with more -lines can show\n")
		}
	}
	return true
}

// failovers writes, for -watches, how long no contender held in the recorded failovers.
func (s planSettings) failovers(w io.Writer, runs []record.Run) {
	if s.watches == 0 {
		return
	}
	for _, g := range report.By(runs, func(run record.Run, r record.Record) string {
		if _, ok := r.Metric(unit.HandoffP50); !ok || !r.Valid() || r.Workload != load.Failover {
			return ""
		}
		return fmt.Sprintf("%d contenders, %s", r.Contenders, report.Title(r, run.Environment.Server))
	}) {
		level := report.Level{Trials: g.Records}
		took := level.Values(unit.HandoffP50)
		fmt.Fprintf(w, "lost session, measured: no contender held for %s (%s to %s in %d trials): %s\n", level.Cell(unit.HandoffP50),
			unit.Quantity(unit.HandoffP50, slices.Min(took)), unit.Quantity(unit.HandoffP50, slices.Max(took)), len(took), g.Title)
	}
}

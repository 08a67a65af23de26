package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
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

// places groups models by their servers, workload, transport and hold, so that the models of a
// group can be compared.
func places(models []fitted) (places [][]fitted) {
	for _, m := range models {
		same := func(p []fitted) bool {
			return p[0].place == m.place && p[0].Workload == m.Workload && p[0].transport == m.transport && p[0].hold == m.hold
		}
		if i := slices.IndexFunc(places, same); i >= 0 {
			places[i] = append(places[i], m)
		} else {
			places = append(places, []fitted{m})
		}
	}
	return places
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
	groups := map[string][]record.Record{}
	of := map[string]fitted{}
	var order []string
	machine := report.Machines(runs)
	for _, run := range runs {
		for _, r := range run.Records {
			if r.Workload != load.Drain && r.Workload != load.Cycle {
				continue
			}
			near := r
			near.Delay = 0 // a model has all delays
			key := report.Title(near, run.Environment.Server) + machine(run, r)
			if groups[key] == nil {
				order = append(order, key)
				server := run.Environment.Server
				place := report.Servers(server) + machine(run, r)
				of[key] = fitted{details: run.Environment.Details, place: place, servers: server.Servers, embedded: server.Mode == "embedded", transport: r.Transport, hold: r.Hold}
			}
			groups[key] = append(groups[key], r)
		}
	}
	for _, key := range order {
		m, err := plan.Fit(groups[key], seed)
		if err != nil {
			lacking := of[key]
			lacking.Model = &plan.Model{Workload: groups[key][0].Workload}
			skipped = append(skipped, fmt.Errorf("%s: %w; such as by: %s", key, err, sweepCommand(lacking, "")))
			continue
		}
		m.Name = key
		found := of[key]
		found.Model = m
		models = append(models, found)
	}
	if len(order) == 0 {
		skipped = append(skipped, fmt.Errorf("no trials of -workload drain or cycle in the records; make them with: %s",
			sweepCommand(fitted{Model: new(plan.Model)}, "")))
	}
	return models, skipped
}

// carried is the share of the highest throughput to plan with.
const carried = 0.7

type manyLevel struct {
	lines int
	rates []float64 // handoffs a second of all lines together, ascending
}

func (l manyLevel) median() float64 { return l.rates[len(l.rates)/2] }

// lines answers -line-rate for many locks: how many independent lines the servers carry, for
// each combination with trials of -workload many. It reports whether there was an answer.
func (s planSettings) lines(w io.Writer, runs []record.Run) bool {
	if s.lineRate == 0 {
		return true
	}
	combinations, names := manyLevels(runs)
	if len(names) == 0 {
		fmt.Fprintln(w, "independent lines: refused: no valid trials of -workload many in the records; make them with: "+
			"zkbench run -ensemble 3 -workload many -recipe lock -contenders 5 -lines 20 -record many20.jsonl")
		return false
	}
	for _, name := range names {
		levels := combinations[name]
		best := slices.MaxFunc(levels, func(a, b manyLevel) int { return cmp.Compare(a.median(), b.median()) })
		at := func(rate float64) int { return int(carried * rate / s.lineRate) }
		fmt.Fprintf(w, "independent lines of %v handoffs/s, %s: %d (%d to %d by the slowest and the fastest trial); %.0f%% of the %.4g handoffs/s that %d lines made\n",
			s.lineRate, name, at(best.median()), at(best.rates[0]), at(best.rates[len(best.rates)-1]), 100*carried, best.median(), best.lines)
		if best.lines == levels[len(levels)-1].lines {
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
	took := map[string][]float64{}
	var names []string
	for _, run := range runs {
		for _, r := range run.Records {
			if v, ok := r.Metric(unit.HandoffP50); ok && r.Valid() && r.Workload == load.Failover {
				name := fmt.Sprintf("%d contenders, %s", r.Contenders, report.Title(r, run.Environment.Server))
				if took[name] == nil {
					names = append(names, name)
				}
				took[name] = append(took[name], v)
			}
		}
	}
	for _, name := range names {
		slices.Sort(took[name])
		n := len(took[name])
		fmt.Fprintf(w, "lost session, measured: no contender held for %s (%s to %s in %d trials): %s\n", unit.Quantity(unit.HandoffP50, took[name][n/2]),
			unit.Quantity(unit.HandoffP50, took[name][0]), unit.Quantity(unit.HandoffP50, took[name][n-1]), n, name)
	}
}

// manyLevels groups the valid trials of -workload many by combination and number of lines. The
// names are in the order of the records.
func manyLevels(runs []record.Run) (levels map[string][]manyLevel, names []string) {
	levels = map[string][]manyLevel{}
	machine := report.Machines(runs)
	for _, run := range runs {
		for _, r := range run.Records {
			rate, ok := r.Metric(unit.Handoffs)
			if !ok || !r.Valid() || r.Workload != load.Many {
				continue
			}
			all := r
			all.Lines = 0
			name := fmt.Sprintf("%d contenders each, %s", r.Contenders, report.Title(all, run.Environment.Server)+machine(run, r))
			if levels[name] == nil {
				names = append(names, name)
			}
			levels[name] = withRate(levels[name], r.Lines, rate)
		}
	}
	return levels, names
}

func withRate(levels []manyLevel, lines int, rate float64) []manyLevel {
	i, found := slices.BinarySearchFunc(levels, lines, func(l manyLevel, n int) int { return l.lines - n })
	if !found {
		levels = slices.Insert(levels, i, manyLevel{lines: lines})
	}
	at, _ := slices.BinarySearch(levels[i].rates, rate)
	levels[i].rates = slices.Insert(levels[i].rates, at, rate)
	return levels
}

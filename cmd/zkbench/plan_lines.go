package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// carried is the share of the highest throughput to plan with.
const carried = 0.7

// manyLevel is the trials of so many independent lines.
type manyLevel struct {
	lines int
	rates []float64 // handoffs a second of all lines together, ascending
}

func (l manyLevel) median() float64 { return l.rates[len(l.rates)/2] }

// lines writes how many independent lines the servers carry, for each combination
// that has trials of -workload many. It reports whether there was an answer.
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
			fmt.Fprintf(w, "  warning: the most lines measured made the most; the servers may carry more, which only a run with more -lines tells\n")
		}
	}
	return true
}

// failovers writes how long nobody held in the recorded failovers, for -watches.
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
		fmt.Fprintf(w, "lost session, measured: nobody held for %s (%s to %s in %d trials): %s\n", unit.Quantity(unit.HandoffP50, took[name][n/2]),
			unit.Quantity(unit.HandoffP50, took[name][0]), unit.Quantity(unit.HandoffP50, took[name][n-1]), n, name)
	}
}

// manyLevels sorts the valid trials of many lines by combination, and by the number
// of lines. The names are in the order of the records.
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
			name := fmt.Sprintf("%d contenders each, %s", r.Contenders, report.Title(all, run.Environment.Server))
			if m := machine(run, r); m != "" {
				name += ", measured by " + m
			}
			if levels[name] == nil {
				names = append(names, name)
			}
			levels[name] = withRate(levels[name], r.Lines, rate)
		}
	}
	return levels, names
}

// withRate adds a trial to levels, which stay sorted.
func withRate(levels []manyLevel, lines int, rate float64) []manyLevel {
	i, found := slices.BinarySearchFunc(levels, lines, func(l manyLevel, n int) int { return l.lines - n })
	if !found {
		levels = slices.Insert(levels, i, manyLevel{lines: lines})
	}
	at, _ := slices.BinarySearch(levels[i].rates, rate)
	levels[i].rates = slices.Insert(levels[i].rates, at, rate)
	return levels
}

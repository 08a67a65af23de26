package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
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
	if m.transport != "" && m.transport != transport.Direct {
		kind += " -via " + m.transport
	}
	return fmt.Sprintf("zkbench sweep %s -recipe lock -workload %s -contenders 2..1000 -limit 20s -record more.jsonl", where, kind)
}

// fitModels fits a model to each combination. skipped has an error for each that has too few
// levels.
func fitModels(runs []record.Run, seed uint64) (models []fitted, skipped []error) {
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

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
)

// A fitted model knows what its trials ran on.
type fitted struct {
	*plan.Model
	details   map[string]string // of the first run that had such trials
	place     string            // its servers
	servers   int
	embedded  bool
	transport string
	hold      time.Duration
}

// places sorts models by what they were measured on, so that those of one place can be
// compared with each other.
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

// sweepCommand is the command that records what a model like m lacks.
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

// models fits a model to each combination that can be fitted. What cannot is told
// by the errors.
func models(runs []record.Run, seed uint64) (models []fitted, skipped []error) {
	groups := map[string][]record.Record{}
	details := map[string]map[string]string{}
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
			key := report.Title(near, run.Environment.Server)
			if m := machine(run, r); m != "" {
				key += ", measured by " + m
			}
			if groups[key] == nil {
				order = append(order, key)
				details[key] = run.Environment.Details
				server := run.Environment.Server
				place := report.Servers(server)
				if m := machine(run, r); m != "" {
					place += ", measured by " + m
				}
				of[key] = fitted{place: place, servers: server.Servers, embedded: server.Mode == "embedded", transport: r.Transport, hold: r.Hold}
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
		found.Model, found.details = m, details[key]
		models = append(models, found)
	}
	if len(order) == 0 {
		skipped = append(skipped, fmt.Errorf("no trials of -workload drain or cycle in the records; make them with: %s",
			sweepCommand(fitted{Model: new(plan.Model)}, "")))
	}
	return models, skipped
}

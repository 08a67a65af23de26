package main

import (
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
)

// A fitted model knows what its trials ran on.
type fitted struct {
	*plan.Model
	details map[string]string // of the first run that had such trials
}

// models fits a model to each combination that can be fitted. What cannot is told
// by the errors.
func models(runs []record.Run, seed uint64) (models []fitted, skipped []error) {
	groups := map[string][]record.Record{}
	details := map[string]map[string]string{}
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
			}
			groups[key] = append(groups[key], r)
		}
	}
	for _, key := range order {
		m, err := plan.Fit(groups[key], seed)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("%s: %w", key, err))
			continue
		}
		m.Name = key
		models = append(models, fitted{m, details[key]})
	}
	if len(order) == 0 {
		skipped = append(skipped, errors.New("no trials of -workload drain or cycle in the records"))
	}
	return models, skipped
}

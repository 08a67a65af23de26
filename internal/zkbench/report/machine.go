package report

import (
	"fmt"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// Machines returns what names the machine that made a record of runs: its system,
// processor and GOMAXPROCS. It is "" for all of them if one machine made all. What is
// not of one machine must not be taken for trials of the same thing.
func Machines(runs []record.Run) func(record.Run, record.Record) string {
	machine := func(run record.Run, r record.Record) string {
		e := run.Environment
		return fmt.Sprintf("%s/%s, %s, GOMAXPROCS %d", e.OS, e.Arch, e.CPU, r.Procs)
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

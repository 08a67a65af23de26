package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
)

// Merge adds what several processes recorded of one trial, in the order of their
// numbers. Measurements are added by load.Merge. Memory, processor time and allocations
// are sums. Pauses and delays are those of the process that had the worst. The server's
// figures are of those parts that have some. A part that is invalid makes the whole
// invalid. Of machines with different numbers of processors the whole has the least, so
// that its name does not depend on who came first.
func Merge(parts []record.Record) (record.Record, error) {
	if len(parts) == 0 {
		return record.Record{}, errors.New("merge: no parts")
	}
	whole := parts[0]
	whole.Invalid = nil
	whole.Memory, whole.Client = record.Memory{}, record.Client{}
	var measured []load.Measurement
	for i, p := range parts {
		whole.Procs = min(whole.Procs, p.Procs)
		if nameAnywhere(p) != nameAnywhere(whole) || p.Trial != whole.Trial {
			return record.Record{}, fmt.Errorf("merge: worker %d measured trial %d (%s), and worker 1 trial %d (%s)", i+1, p.Trial, p.Name(), whole.Trial, whole.Name())
		}
		measured = append(measured, p.Measurement)
		whole.Memory.RSS += p.Memory.RSS
		whole.Memory.Session += p.Memory.Session / int64(len(parts))
		whole.Client = together(whole.Client, p.Client)
		for _, reason := range p.Invalid {
			whole.Invalid = append(whole.Invalid, fmt.Sprintf("worker %d: %s", i+1, reason))
		}
		for name, grown := range p.Server {
			if i > 0 {
				return record.Record{}, fmt.Errorf("merge: worker %d has read the server's figures too (%s: %v)", i+1, name, grown)
			}
		}
	}
	var err error
	if whole.Measurement, err = load.Merge(whole.Workload, measured); err != nil {
		return record.Record{}, fmt.Errorf("trial %d (%s): %w", whole.Trial, whole.Name(), err)
	}
	whole.Missing = slices.Clone(parts[0].Missing)
	return whole, nil
}

// nameAnywhere is a record's name but for GOMAXPROCS, which is of its machine.
func nameAnywhere(r record.Record) string {
	r.Procs = 1
	return r.Name()
}

func together(a, b record.Client) record.Client {
	var other *time.Duration
	if a.Other != nil && b.Other != nil {
		sum := *a.Other + *b.Other
		other = &sum
	}
	return record.Client{
		Other: other,
		Took:  max(a.Took, b.Took), CPU: a.CPU + b.CPU, Allocs: a.Allocs + b.Allocs,
		GC: max(a.GC, b.GC), LongGC: max(a.LongGC, b.LongGC), SchedP99: max(a.SchedP99, b.SchedP99),
	}
}

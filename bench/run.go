package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/probe"
)

// Run runs one trial: it opens a session for each contender, measures, and
// closes the sessions. An error names the trial. It matches load.ErrBroken if the
// recipe broke a promise, and otherwise wraps the error of a session, the relay or
// a hook.
func (e Experiment) Run(ctx context.Context, t Trial) (record.Record, error) {
	r := e.Record(t)
	if err := e.run(ctx, t, &r); err != nil {
		return record.Record{}, fmt.Errorf("trial %d (%s): %w", t.Number, r.Name(), err)
	}
	if e.Check != nil {
		r.Invalid = e.Check(r)
	}
	return r, nil
}

// Record returns the record of a trial that has not run: its settings, without
// measurements.
func (e Experiment) Record(t Trial) record.Record {
	r := record.Record{
		Recipe: t.Recipe, Workload: t.Workload, Strategy: t.Strategy, Contenders: t.Contenders,
		Transport: t.Transport.Name, Delay: t.Delay, Hold: e.Hold, Procs: runtime.GOMAXPROCS(0), Trial: t.Number,
	}
	switch t.Workload {
	case load.Many:
		r.Lines = e.lines(t)
	case load.Timeline:
		r.Faults = e.Faults
	case load.Open:
		r.Rate, r.Arrivals = e.Rate, cmp.Or(e.Arrivals, load.Poisson)
	}
	if e.Part == nil {
		return r
	}
	// The record describes what all processes do together.
	r.Workers = e.Part.Of
	if t.Workload == load.Many {
		r.Lines *= r.Workers
	} else {
		r.Contenders *= r.Workers
	}
	r.Rate *= float64(r.Workers)
	return r
}

func (e Experiment) run(ctx context.Context, t Trial, r *record.Record) (err error) {
	watch := watchMemory(t.Transport)
	all, err := e.open(ctx, t)
	if err != nil {
		return err
	}
	defer all.close(ctx)
	figures := figures{read: e.Figures, wanted: e.Wanted}
	if t.Workload == load.Timeline {
		figures.read = nil // a restart resets them
	}
	var client probe.Probe
	var others time.Duration
	known := false
	l := e.load(t, all)
	l.Begin = func(ctx context.Context) error {
		r.Memory = watch.read(len(all.sessions))
		err := figures.readBefore(ctx)
		if err == nil && e.Part != nil {
			err = e.Part.Begin(ctx)
		}
		others, known = t.Transport.cpu()
		client = probe.Start()
		return err
	}
	l.End = func(ctx context.Context) error {
		used := client.Stop()
		r.Client = record.Client{Took: used.Took, CPU: used.CPU, GC: used.GC, LongGC: used.LongGC, SchedP99: used.SchedP99, Allocs: used.Allocs}
		if now, ok := t.Transport.cpu(); ok && known {
			r.Client.Other = new(now - others)
		}
		if e.Part != nil {
			if err := e.Part.End(ctx); err != nil {
				return err
			}
		}
		return figures.readAfter(ctx)
	}
	r.Measurement, err = l.Run(ctx)
	r.Server, r.Missing = figures.grown, figures.missing
	return err
}

func (e Experiment) load(t Trial, all opened) load.Load {
	l := load.Load{
		Enrolled: e.counter("in line", len(all.sessions)),
		Workload: t.Workload, Recipe: t.Recipe, Strategy: t.Strategy, Sessions: all.sessions,
		Path: fmt.Sprintf("%s/%04d", e.Root, t.Number),
		Hold: e.Hold, Duration: e.Duration, Warmup: e.Warmup,
		Rounds: cmp.Or(e.Rounds, 20), Lines: e.lines(t), Rate: e.Rate, Arrivals: cmp.Or(e.Arrivals, load.Poisson), Seed: e.Seed + uint64(t.Number),
		Kill: all.kill, Aftermath: aftermath, Faults: e.Faults, Server: e.Server, Reopen: all.reopen,
	}
	if e.Part == nil {
		return l
	}
	if t.Workload == load.Many {
		l.Path += fmt.Sprintf("/worker-%d", e.Part.Number)
	} else {
		l.Shared = true
	}
	// With the same seed, the acquisitions of all processes would arrive at the same times.
	l.Seed += uint64(e.Part.Number) << 32
	return l
}

func (e Experiment) lines(t Trial) int {
	if t.Workload == load.Many {
		return max(1, e.Lines)
	}
	return 1
}

// Merge combines the records of several processes of one trial, in the order of the
// processes' numbers.
//
//   - load.Workload.Merge combines the measurements.
//   - Resident memory, processor time and allocations are added.
//   - Memory.Session is the mean of all processes.
//   - Pauses and waits for a processor are the longest of any process.
//   - Only the first part may have the server's figures; it is an error if another has.
//   - If a part is invalid, the whole is invalid.
//   - Procs is the smallest of all machines, so that the name does not depend on the
//     order of the processes.
func Merge(parts []record.Record) (record.Record, error) {
	if len(parts) == 0 {
		return record.Record{}, errors.New("merge: no parts")
	}
	whole := parts[0]
	whole.Invalid = nil
	whole.Memory = record.Memory{}
	var measured []load.Measurement
	for i, p := range parts {
		whole.Procs = min(whole.Procs, p.Procs)
		if nameAnywhere(p) != nameAnywhere(whole) || p.Trial != whole.Trial {
			return record.Record{}, fmt.Errorf("merge: worker %d measured trial %d (%s), but worker 1 trial %d (%s)", i+1, p.Trial, p.Name(), whole.Trial, whole.Name())
		}
		measured = append(measured, p.Measurement)
		whole.Memory.RSS += p.Memory.RSS
		whole.Memory.Session += p.Memory.Session / int64(len(parts))
		if i > 0 {
			whole.Client = together(whole.Client, p.Client)
		}
		for _, reason := range p.Invalid {
			whole.Invalid = append(whole.Invalid, fmt.Sprintf("worker %d: %s", i+1, reason))
		}
		for name, grown := range p.Server {
			if i > 0 {
				return record.Record{}, fmt.Errorf("merge: worker %d also read the server's figures (%s: %v)", i+1, name, grown)
			}
		}
	}
	var err error
	if whole.Measurement, err = whole.Workload.Merge(measured); err != nil {
		return record.Record{}, fmt.Errorf("trial %d (%s): %w", whole.Trial, whole.Name(), err)
	}
	whole.Missing = slices.Clone(parts[0].Missing)
	return whole, nil
}

// nameAnywhere is a record's name without GOMAXPROCS, which depends on the machine.
func nameAnywhere(r record.Record) string {
	r.Procs = 1
	return r.Name()
}

func together(a, b record.Client) record.Client {
	var other *time.Duration
	if a.Other != nil && b.Other != nil {
		other = new(*a.Other + *b.Other)
	}
	return record.Client{
		Other: other,
		Took:  max(a.Took, b.Took), CPU: a.CPU + b.CPU, Allocs: a.Allocs + b.Allocs,
		GC: max(a.GC, b.GC), LongGC: max(a.LongGC, b.LongGC), SchedP99: max(a.SchedP99, b.SchedP99),
	}
}

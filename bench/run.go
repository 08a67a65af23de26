package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
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

type figures struct {
	read   func(context.Context) (map[string]float64, error)
	wanted []string
	before map[string]float64

	grown   map[string]float64 // growth, by name
	missing []string           // wanted figures that the server does not have
}

func (f *figures) readBefore(ctx context.Context) (err error) {
	if f.read == nil {
		return nil
	}
	if f.before, err = f.read(ctx); err != nil {
		return fmt.Errorf("read the server's figures: %w", err)
	}
	return nil
}

func (f *figures) readAfter(ctx context.Context) error {
	if f.read == nil {
		return nil
	}
	after, err := f.read(ctx)
	if err != nil {
		return fmt.Errorf("read the server's figures: %w", err)
	}
	f.grown = map[string]float64{}
	for name, value := range after {
		before, ok := f.before[name]
		// Most of the hundreds of figures do not change, and are left out. Wanted ones are
		// recorded even if they do not change.
		if ok && (value != before || slices.Contains(f.wanted, name)) {
			f.grown[name] = value - before
		}
	}
	for _, name := range f.wanted {
		if _, ok := f.grown[name]; !ok {
			f.missing = append(f.missing, name)
		}
	}
	return nil
}

type memory struct {
	transport Transport
	before    int64
}

// watchMemory first returns the memory of earlier trials to the system, so that the
// resident memory is this trial's.
func watchMemory(t Transport) memory {
	debug.FreeOSMemory()
	return memory{t, inUse()}
}

// many is the smallest number of sessions for which collectLess has an effect.
const many = 1000

// collectLess makes garbage collections rarer while n sessions are opened, until the
// caller calls restore. go-zookeeper 1.0.4 allocates a buffer of 1.5 MiB for each session
// and drops it at once. So the heap would double, and the collector scan all stacks, for
// every 20 to 300 sessions: four tenths of the processor time of a trial with 10,000. The
// limit is 128 MiB above the memory in use and 48 KiB for each session, less than zkbench
// requires of a machine. A limit that is already set stays.
func collectLess(n int) (restore func()) {
	limit := debug.SetMemoryLimit(-1)
	if n < many || limit != math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(inUse() + int64(n)*48<<10 + 128<<20)
	percent := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// read is called when all contenders have joined. It collects garbage and returns the
// memory to the system, because opening a session allocates more than the session keeps,
// and the measured part should not start with that garbage.
func (m memory) read(sessions int) record.Memory {
	debug.FreeOSMemory()
	grown := inUse() - m.before
	mem := record.Memory{RSS: rss(0)}
	if m.transport.Processes == nil {
		mem.Session = max(0, grown/int64(sessions))
		return mem
	}
	for _, pid := range m.transport.Processes() {
		mem.RSS += rss(pid)
	}
	return mem
}

func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

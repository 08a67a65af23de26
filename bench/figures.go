package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

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

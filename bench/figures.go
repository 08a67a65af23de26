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

	grown   map[string]float64 // by how much, by name
	missing []string           // wanted, and not there
}

func (f *figures) begin(ctx context.Context) (err error) {
	if f.read == nil {
		return nil
	}
	if f.before, err = f.read(ctx); err != nil {
		return fmt.Errorf("read the server's figures: %w", err)
	}
	return nil
}

func (f *figures) end(ctx context.Context) error {
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
		// Of hundreds of figures most stand still; those that somebody wanted
		// are kept all the same.
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

// watchMemory gives the system back what earlier trials have left, so that the
// resident memory is this trial's.
func watchMemory(t Transport) memory {
	debug.FreeOSMemory()
	return memory{t, inUse()}
}

// many sessions make it worth to collect garbage less often while they are opened.
const many = 1000

// collectLess has garbage collected less often while n sessions are opened, until
// restore is called. go-zookeeper 1.0.4 makes a buffer of 1.5 MiB for each, which is
// thrown away at once. So the heap would double, and all stacks be looked through, for
// each 20 to 300 of them: four tenths of the processor time of a trial with 10,000. The
// room is less than a machine was asked to have for so many sessions, but for 128 MiB.
// A limit that was set already stays as it is.
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

// read is called when everybody has enrolled. It collects garbage, so that the
// measured part does not start with the enrolment's, and gives it back: opening a session
// makes more of it than the session keeps.
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

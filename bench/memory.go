package bench

import (
	"runtime"
	"runtime/debug"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// memory compares what this process uses with what it used before its sessions
// were opened.
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

// inUse returns the bytes of heap and stacks in use after a garbage collection.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

package plugin

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// trimEvery is the interval at which a plugin checks whether it can return memory.
const trimEvery = 5 * time.Second

// trim returns garbage to the operating system while the plugin is mostly idle, until stopped
// is closed. A thousand waiting sessions make 1 MB of garbage a second with their heartbeats,
// and opening them has made more. Go would collect it when the heap has doubled, and keep the
// memory. A busy plugin collects by itself, and trim leaves it alone.
func trim(stopped <-chan struct{}) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	before := readHeap()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C:
		}
		now := readHeap()
		if now.worthTrimming(before) {
			debug.FreeOSMemory()
			now = readHeap()
		}
		before = now
	}
}

// heap is the runtime's view of its memory, in bytes.
type heap struct {
	collections uint64 // so far
	live        uint64 // objects found by the last collection
	objects     uint64 // live ones and garbage
	unused      uint64 // free memory not returned to the system
	stacks      uint64
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	at := func(i int) uint64 { return samples[i].Value.Uint64() }
	return heap{at(0), at(1), at(2), at(3), at(4)}
}

// minTrim is the amount of memory, in bytes, that a collection must exceed to be worth its time.
const minTrim = 1 << 20

// worthTrimming reports whether nothing was collected since before, and at least a sixteenth
// can be returned. With an eighth, the memory of a thousand waiting sessions varies by 6 MB,
// with a sixteenth by 3 MB. The processor time is the same.
func (h heap) worthTrimming(before heap) bool {
	garbage := h.objects - min(h.objects, h.live)
	return h.collections == before.collections && garbage+h.unused > max(minTrim, (h.live+h.stacks)/16)
}

package plugin

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// trimEvery is how often a plugin looks whether it has memory to give back.
const trimEvery = 5 * time.Second

// trim gives garbage back to the system while little happens, until stopped is closed.
// A thousand sessions that wait make 1 MB of garbage a second with their beats, and
// opening them has made more. Go would collect it when the heap has doubled, and keep
// the room. A plugin that is busy collects by itself, and is left alone.
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

// heap is what the runtime tells of its memory, in bytes.
type heap struct {
	collections uint64 // so far
	live        uint64 // objects that the last collection has found
	objects     uint64 // live ones and garbage
	unused      uint64 // room that the system does not have back
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

// leastTrimmed is not worth a collection, in bytes.
const leastTrimmed = 1 << 20

// worthTrimming reports whether nothing was collected since before, and there is a
// sixteenth to give back. With an eighth a thousand sessions that wait go up and down by
// 6 MB, with a sixteenth by 3 MB. The processor time is the same.
func (h heap) worthTrimming(before heap) bool {
	garbage := h.objects - min(h.objects, h.live)
	return h.collections == before.collections && garbage+h.unused > max(leastTrimmed, (h.live+h.stacks)/16)
}

package plugin

import (
	"runtime"
	"testing"
)

func TestAQuietPluginGivesMemoryBack(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name        string
		before, now heap
		want        bool
	}{
		{"nothing to give back", heap{}, heap{live: 3 * mib, objects: 3 * mib}, false},
		{"less than is worth it", heap{}, heap{live: mib, objects: 2 * mib}, false},
		{"garbage", heap{}, heap{live: 3 * mib, objects: 5 * mib}, true},
		{"room", heap{}, heap{live: 3 * mib, objects: 3 * mib, unused: 2 * mib}, true},
		{"a sixteenth of much", heap{}, heap{live: 60 * mib, stacks: 20 * mib, objects: 65 * mib}, false},
		{"more than a sixteenth", heap{}, heap{live: 60 * mib, stacks: 20 * mib, objects: 66 * mib}, true},
		{"busy", heap{collections: 7}, heap{collections: 8, live: 3 * mib, objects: 5 * mib}, false},
		{"between a collection and its end", heap{}, heap{live: 3 * mib, objects: 2 * mib}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.now.worthTrimming(test.before); got != test.want {
				t.Errorf("worth trimming: %v", got)
			}
		})
	}
}

// The runtime has the metrics under these names.
func TestHeapIsRead(t *testing.T) {
	runtime.GC()
	if h := readHeap(); h.collections == 0 || h.live == 0 || h.objects == 0 || h.stacks == 0 {
		t.Errorf("%+v", h)
	}
}

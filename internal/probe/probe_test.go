package probe_test

import (
	"runtime"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/probe"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

func TestProbeSeesWhatWasUsed(t *testing.T) {
	p := probe.Start()
	garbage := make([][]byte, 0, 64)
	for range 64 {
		garbage = append(garbage, make([]byte, 1<<16))
	}
	runtime.GC()
	got := p.Stop()
	runtime.KeepAlive(garbage)
	if got.Allocs < 64<<16 {
		t.Errorf("%d bytes allocated; want %d at least", got.Allocs, 64<<16)
	}
	if got.GC <= 0 || got.LongGC <= 0 {
		t.Errorf("a garbage collection paused for %v, longest %v", got.GC, got.LongGC)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

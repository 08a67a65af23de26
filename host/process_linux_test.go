package host_test

import (
	"os"
	"testing"
	"time"
)

// TestLaunchesLeaveNoFiles counts this process's file descriptors.
func TestLaunchesLeaveNoFiles(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	once := func() {
		p := launch(t, config(t, "plugin"))
		open(t, p, time.Minute)
		if err := p.Close(ctx(t)); err != nil {
			t.Error(err)
		}
	}
	once() // whatever is opened only once in a process
	before := files()
	for range 5 {
		once()
	}
	if after := files(); after > before {
		t.Errorf("%d file descriptors; there were %d", after, before)
	}
}

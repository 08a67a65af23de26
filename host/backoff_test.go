package host

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	b := &backoff{least: 100 * time.Millisecond, most: time.Second}
	expect := func(wants ...time.Duration) {
		t.Helper()
		for _, want := range wants {
			if got := b.next(); got < want*8/10 || got > want*12/10 {
				t.Errorf("%v; want about %v", got, want)
			}
		}
	}
	expect(100*time.Millisecond, 200*time.Millisecond, 400*time.Millisecond, 800*time.Millisecond, time.Second, time.Second)
	b.ran(time.Second - 1)
	expect(time.Second)
	b.ran(time.Second)
	expect(100*time.Millisecond, 200*time.Millisecond)
}

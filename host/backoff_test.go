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

func TestTheDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	if c, err := (Config{}).defaults(); err != nil || c.StartTimeout != 10*time.Second {
		t.Errorf("StartTimeout is %v, %v", c.StartTimeout, err)
	}
	for in, want := range map[[2]time.Duration][2]time.Duration{
		{}:               {100 * time.Millisecond, 30 * time.Second},
		{time.Minute, 0}: {time.Minute, time.Minute},
	} {
		c := SupervisorConfig{MinBackoff: in[0], MaxBackoff: in[1]}.defaults()
		if got := [2]time.Duration{c.MinBackoff, c.MaxBackoff}; got != want {
			t.Errorf("backoffs %v mean %v; want %v", in, got, want)
		}
	}
}

package host

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
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

// noProcess is the peer of a plugin without a process.
type noProcess struct{ peer }

func (noProcess) pid() int { return 7 }

func TestAnUpgradeLogsTheCapabilitiesThatTheNewPluginLacks(t *testing.T) {
	can := func(names ...string) *Plugin { return &Plugin{peer: noProcess{}, can: names} }
	for name, test := range map[string]struct {
		old, now *Plugin
		want     bool
	}{
		"less":    {can("lock", "queue", "resume"), can("lock", "resume"), true},
		"more":    {can("lock", "resume"), can("lock", "queue", "resume"), false},
		"nothing": {nil, can("lock"), false},
	} {
		out := new(bytes.Buffer)
		s := &Supervisor{cfg: SupervisorConfig{Plugin: Config{Logger: hclog.New(&hclog.LoggerOptions{Output: out})}}}
		s.log(test.old, test.now)
		if said := out.String(); strings.Contains(said, `capabilities=["queue"]`) != test.want || !strings.Contains(said, "pid=7") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

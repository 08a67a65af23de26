package host

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

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

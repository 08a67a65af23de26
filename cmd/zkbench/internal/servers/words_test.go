package servers

import (
	"maps"
	"reflect"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
)

func TestSrvrHasVersionAndMode(t *testing.T) {
	for _, tt := range []struct{ name, answer, version, mode string }{
		{"release", "Zookeeper version: 3.9.2-e454e8c7283100c7caec6dcae2bc82aaecb63023, built on 2024-02-12 20:59 UTC\nMode: standalone\n", "3.9.2", "standalone"},
		{"Debian", "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2023-01-30 10:40 UTC\nMode: standalone\n", "3.8.0", "standalone"},
		{"leader", "Zookeeper version: 3.8.0, built on x\nMode: leader\nNode count: 5\n", "3.8.0", "ensemble"},
		{"follower", "Zookeeper version: 3.8.0, built on x\nMode: follower\n", "3.8.0", "ensemble"},
		{"embedded", "Zookeeper version: 3.8.0-zkrecipes-embedded\nMode: standalone\n", "3.8.0-zkrecipes-embedded", "standalone"},
		{"forbidden", "srvr is not executed because it is not in the whitelist.\n", "", ""},
		{"not serving", "This ZooKeeper instance is not currently serving requests\n", "", ""},
		{"silent", "", "", ""},
	} {
		version, mode := parseSrvr(tt.answer)
		if version != tt.version || mode != tt.mode {
			t.Errorf("%s: version %q, mode %q; want %q, %q", tt.name, version, mode, tt.version, tt.mode)
		}
	}
}

func TestMntrIsReadAndAddedUp(t *testing.T) {
	got := ParseMntr("zk_version\t3.8.0-x, built on y\nzk_packets_received\t12\nzk_avg_latency\t0.5\nnonsense\n")
	if want := map[string]float64{"packets_received": 12, "avg_latency": 0.5}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
	server := zktest.Embedded(t)
	one := must.Get(words{[]string{server.Addr()}, fourletter.Dialer(nil)}.mntr(t.Context()))(t)
	two, err := words{[]string{server.Addr(), server.Addr()}, fourletter.Dialer(nil)}.mntr(t.Context())
	if err != nil || one["znode_count"] == 0 || two["znode_count"] != 2*one["znode_count"] {
		t.Errorf("znode_count is %v with one server and %v with two, %v", one["znode_count"], two["znode_count"], err)
	}
}

// If a server replies only after a trial, all its counts would look like growth in the trial.
func TestFiguresNeedTheRepliesOfAllServers(t *testing.T) {
	server := zktest.Embedded(t)
	some, err := words{[]string{server.Addr(), "127.0.0.1:1"}, fourletter.Dialer(nil)}.mntr(t.Context())
	if err != nil || len(some) != 0 {
		t.Errorf("%v, %v; want no figures", some, err)
	}
}

// A changed setting of the servers changes what is measured. A fact that one side does not
// know, or that only was measured, does not show a change.
func TestChangedSettingsOfServersAreFound(t *testing.T) {
	was := map[string]string{
		"server tickTime": "2000", "server os.memory.max": "256MB", "server maxClientCnxns": "60", "server fsync": "175µs",
		"server forceSync": notKnown, "server jute.maxbuffer": "4194304", "cpus": "2",
	}
	for _, tt := range []struct{ name, now, want string }{
		{"server tickTime", "2000", ""},
		{"server tickTime", "3000", "tickTime"},
		{"server os.memory.max", "1024MB", "os.memory.max"},
		{"server disk", "tmpfs", ""},
		{"server maxClientCnxns", "0", ""},
		{"server fsync", "190µs", ""},
		{"server forceSync", "yes", ""},
		{"server jute.maxbuffer", notKnown, ""},
		{"cpus", "4", ""},
	} {
		now := maps.Clone(was)
		now[tt.name] = tt.now
		got, before, after := Changed(was, now)
		if got != tt.want || got != "" && (before != was[tt.name] || after != tt.now) {
			t.Errorf("%s %s: %q has changed from %q to %q; want %q", tt.name, tt.now, got, before, after, tt.want)
		}
	}
}

package main

import "testing"

func TestSrvrTellsVersionAndMode(t *testing.T) {
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

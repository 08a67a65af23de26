package look

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Answers of ZooKeeper 3.8.0 to dump.
const (
	ofLeader = `SessionTracker dump:
Session Sets (3)/(1):
0 expire at Sat Nov 28 18:45:09 UTC 2026:
2 expire at Sat Nov 28 18:45:13 UTC 2026:
	0x1000216eca50000
	0x1000216eca50001
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x1000216eca50000:
	/l/lock-0000000000
0x1000216eca50009:
	/l/lock-0000000001
Connections dump:
Connections Sets (2)/(1):
1 expire at Sat Nov 28 18:45:21 UTC 2026:
	ip: /127.0.0.1:37380 sessionId: 0x0
`
	ofFollower = `SessionTracker dump:
Global Sessions(2):
0x1000216eca50000	10000ms
0x1000216eca50001	10000ms
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x1000216eca50009:
	/l/lock-0000000001
`
)

func TestTheSessionOfAContender(t *testing.T) {
	const own, other, gone = 0x1000216eca50000, 0x1000216eca50001, 0x1000216eca50009
	line := []recipes.Contender{
		{Znode: "/l/lock-0000000000", SessionID: own},
		{Znode: "/l/lock-0000000001", SessionID: gone},
		{Znode: "/l/lock-0000000002", SessionID: other},
		{Znode: "/l/lock-0000000003"}, // a persistent znode, which another check reports
	}
	for name, c := range map[string]struct {
		dumps []string
		want  int
	}{
		"leader":            {[]string{ofLeader}, 1},
		"follower":          {[]string{"", ofFollower}, 1},
		"all":               {[]string{ofFollower, ofLeader, ofFollower}, 1},
		"not allowed":       {[]string{"dump is not executed because it is not in the whitelist.", ""}, 0},
		"no servers":        {nil, 0},
		"own session lacks": {[]string{"SessionTracker dump:\nGlobal Sessions(1):\n0x1000216eca50001\t10000ms\nephemeral nodes dump:\n"}, 0},
	} {
		got := orphans(line, own, c.dumps)
		if len(got) != c.want || c.want == 1 && got[0].SessionID != gone {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := sessionsOf(ofLeader); len(got) != 2 || !got[own] || !got[other] {
		t.Errorf("the sessions are %v; want the two above the owners of znodes", got)
	}
}

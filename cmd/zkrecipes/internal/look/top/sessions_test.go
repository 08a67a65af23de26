package top

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ofTheLeader and ofAFollower are answers of ZooKeeper 3.8.0. The process of session
// 0x1000197d8ae0000 was stopped.
const (
	ofTheLeader = `SessionTracker dump:
Session Sets (6)/(2):
0 expire at Thu Nov 26 05:50:33 CET 2026:
2 expire at Thu Nov 26 05:50:35 CET 2026:
	0x1000197d8ae0000
	0x1000197d8ae0002
1 expire at Thu Nov 26 05:50:43 CET 2026:
	0x1000197d8ae0001
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x1000197d8ae0000:
	/b/x/lock-0000000000
Connections dump:
Connections Sets (2)/(1):
1 expire at Thu Nov 26 05:50:49 CET 2026:
	ip: /127.0.0.1:47612 sessionId: 0x1000197d8ae0000
`
	ofAFollower = `SessionTracker dump:
Global Sessions(2):
0x1000197d8ae0000	12000ms
0x1000197d8ae0001	10000ms
ephemeral nodes dump:
Sessions with Ephemerals (1):
0x1000197d8ae0000:
	/b/x/lock-0000000000
`
	cons = ` /127.0.0.1:46674[1](queued=0,recved=16,sent=16,sid=0x1000197d8ae0001,lop=PING,est=1795672223103,to=10000,lcxid=0x0,lzxid=0x100000009,lresp=26740640,llat=2,minlat=0,avglat=1,maxlat=8)
 /127.0.0.1:45792[0](queued=0,recved=1,sent=0)
 /[0:0:0:0:0:0:0:1]:45426[1](queued=0,recved=25,sent=26,sid=0x1000197d8ae0002,lop=PING,est=1795672218883,to=4000,lcxid=0x0,lzxid=0x100000009,lresp=26736430,llat=0,minlat=0,avglat=9,maxlat=63)
`
)

const stopped, own = 0x1000197d8ae0000, 0x1000197d8ae0001

// answers returns a function that answers as the servers of -admin do.
func answers(all map[string]string) func(context.Context, string, string) string {
	return func(_ context.Context, server, word string) string { return all[server+" "+word] }
}

// TestTheLeaderSaysWhenSessionsEnd: the other servers report only which client owns a session.
func TestTheLeaderSaysWhenSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := asker{servers: []string{"follower", "leader"}, word: answers(map[string]string{"follower cons": cons, "follower dump": ofAFollower, "leader dump": ofTheLeader})}
		a.ask(t.Context(), own, 10*time.Second)
		s := a.last
		if left, ends := s.ending(stopped); !s.known || left != 2*time.Second || !ends || s.why != "" {
			t.Errorf("the session that has missed pings: %v left, ends: %v; %q", left, ends, s.why)
		}
		if left, ends := s.ending(own); left != 10*time.Second || ends {
			t.Errorf("the session of top: %v left, ends: %v", left, ends)
		}
		if left, ends := s.ending(own + 1); left != 2*time.Second || ends { // two of four seconds are left, because it has just sent a ping
			t.Errorf("another session: %v left, ends: %v", left, ends)
		}
		if s.hosts[own] != "127.0.0.1" || s.hosts[own+1] != "0:0:0:0:0:0:0:1" || s.hosts[stopped] != "" {
			t.Errorf("hosts %v", s.hosts)
		}
		a.word = answers(map[string]string{"leader dump": ofTheLeader})
		if a.ask(t.Context(), own, 10*time.Second); a.last != s {
			t.Error("the servers were asked again at once")
		}
		time.Sleep(leastAsk)
		if a.ask(t.Context(), own, 3*time.Second); !a.last.known || a.last.limit[stopped] != 4*time.Second {
			t.Errorf("without a connection, the session's timeout is unknown: %v", a.last.limit)
		}
	})
}

// TestDeadlinesAreUnknown: only the leader of this ensemble reports deadlines.
func TestDeadlinesAreUnknown(t *testing.T) {
	for name, a := range map[string]asker{
		"no -admin":        {},
		"no answer":        {servers: []string{"leader"}, word: answers(nil)},
		"not allowed":      {servers: []string{"leader"}, word: answers(map[string]string{"leader dump": "dump is not executed because it is not in the whitelist.\n", "leader cons": "cons is not executed because it is not in the whitelist.\n"})},
		"no leader":        {servers: []string{"leader"}, word: answers(map[string]string{"leader dump": ofAFollower})},
		"another ensemble": {servers: []string{"leader"}, word: answers(map[string]string{"leader dump": strings.ReplaceAll(ofTheLeader, "0x1000197d8ae0001", "0x2000197d8ae0001")})},
		"another form":     {servers: []string{"leader"}, word: answers(map[string]string{"leader dump": strings.ReplaceAll(ofTheLeader, "Thu Nov", "2026-11")})},
	} {
		a.ask(t.Context(), own, 10*time.Second)
		if left, ends := a.last.ending(stopped); a.last.known || left != 0 || ends || a.last.why == "" {
			t.Errorf("%s: %v left, ends: %v, %q", name, left, ends, a.last.why)
		}
	}
}

// A program that answers at the port of a server cannot write to the terminal.
func TestAHostIsAnAddress(t *testing.T) {
	for _, host := range []string{"\x1bc", "\x1bP1", "\u009b2J", "a\x9b2J", "1.2.3.4\x07", "\u202e1.2.3.4", "a\rb"} {
		a := asker{servers: []string{"leader"}, word: answers(map[string]string{"leader cons": strings.ReplaceAll(cons, "127.0.0.1", host), "leader dump": ofTheLeader})}
		a.ask(t.Context(), own, 10*time.Second)
		if got, ok := a.last.hosts[own]; ok {
			t.Errorf("%q is taken for the host %q", host, got)
		}
		if a.last.hosts[own+1] != "0:0:0:0:0:0:0:1" {
			t.Errorf("%q hides the others: %v", host, a.last.hosts)
		}
	}
}

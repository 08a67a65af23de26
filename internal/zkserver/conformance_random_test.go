package zkserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// TestConformanceRandom plays random scripts against both servers. It finds differences
// that the written scripts do not. Run it longer with -rapid.checks=10000.
func TestConformanceRandom(t *testing.T) {
	// The servers must not delete containers during a script.
	quick := ensembletest.Quick(1)
	quick.SystemProperties["znode.container.checkIntervalMs"] = "3600000"
	e := ensembletest.Start(t, quick)
	version := e.Installation().Version
	like := releaseOf(t, version)
	if version != like.Recorded() {
		t.Skipf("the in-process server is like %s, not like %s", like.Recorded(), version)
	}
	real := e.Addrs()[0]
	addr := embeddedWith(t, zkserver.Config{
		Like: like, TickTime: quick.TickTime, MaxSessionTimeout: quick.MaxSessionTimeout, ReapInterval: time.Hour,
	})
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		g := &scriptGen{T: t, like: like, open: map[string]bool{}, closes: rapid.Bool().Draw(t, "closes")}
		script := g.script()
		n++
		name := fmt.Sprintf("random-%d", n)
		want, err := play(real, name, script)
		if err != nil {
			t.Fatal("ZooKeeper: ", err)
		}
		got, err := play(addr, name, script)
		if err != nil {
			t.Fatal("zkserver: ", err)
		}
		if g.closes {
			want, got = sortEvents(want), sortEvents(got)
		}
		if got != want {
			t.Fatalf("transcript differs from ZooKeeper's (-):\n%s\nof the script:\n%s", diff(want, got), script)
		}
	})
}

// sortEvents sorts runs of events. A closed session's ephemeral znodes are deleted in an
// unspecified order.
func sortEvents(transcript string) string {
	lines := strings.Split(transcript, "\n")
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && strings.Contains(lines[j], ": event ") {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
	return strings.Join(lines, "\n")
}

type scriptGen struct {
	*rapid.T
	open   map[string]bool // clients with a connection
	closes bool            // sessions may be closed
	like   zkserver.Release
	lines  []string
}

func (g *scriptGen) add(format string, a ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, a...))
}

func (g *scriptGen) pick(what ...string) string { return rapid.SampledFrom(what).Draw(g.T, "pick") }

func (g *scriptGen) script() string {
	clients := []string{"a", "b"}
	for _, c := range clients {
		g.add("open %s timeout=30000", c)
		g.open[c] = true
	}
	g.add("mark m")
	for range rapid.IntRange(1, 40).Draw(g.T, "steps") {
		g.step(g.pick(clients...))
	}
	for _, c := range clients {
		if g.open[c] {
			g.add("drain %s", c)
		}
	}
	g.add("open z")
	for _, path := range somePaths {
		g.add("z getData %s", path)
		g.add("z getChildren2 %s", path)
	}
	return strings.Join(g.lines, "\n")
}

var somePaths = []string{"$", "$/a", "$/b", "$/a/x", "$/a/y", "$/b/x", "$/a/x/q"}

// path returns one of a few paths, so that requests conflict, and sometimes an invalid one.
func (g *scriptGen) path() string {
	if rapid.IntRange(0, 29).Draw(g.T, "odd") == 0 {
		return g.pick("$/", "$//a", "$/a/../b", "$/.", "$/a/")
	}
	return g.pick(somePaths...)
}

func (g *scriptGen) step(c string) {
	if !g.open[c] {
		g.add("resume %s from=%s timeout=30000", c, c)
		g.open[c] = true
		return
	}
	switch k := rapid.IntRange(0, 19).Draw(g.T, "step"); {
	case k < 11:
		g.add("%s %s", c, g.simple())
	case k < 13:
		g.block(c, "pipeline", func() string {
			// In a pipeline, ZooKeeper may check a request by the ACL from before an
			// earlier setACL.
			if r := g.simple(); !strings.HasPrefix(r, "setACL") {
				return r
			}
			return "sync " + g.path()
		})
	case k < 15:
		g.block(c, "multi", g.write)
	case k == 15:
		if g.like == zkserver.Release34 {
			return
		}
		g.block(c, "multiRead", func() string { return g.pick("getData", "getChildren") + " " + g.path() })
	case k == 16:
		g.add("drain %s", c)
	case k == 17:
		// Never in a pipeline: there ZooKeeper's reply may overtake others.
		g.add("%s auth scheme=digest secret=u:%s", c, g.pick("p", "q"))
		g.add("mark m")
	case k == 18:
		g.add("hangup %s", c)
		g.open[c] = false
	case g.closes:
		g.add("%s closeSession", c)
		g.add("eof %s", c)
		g.add("open %s timeout=30000", c)
	}
}

func (g *scriptGen) block(c, op string, line func() string) {
	g.add("%s %s", c, op)
	for range rapid.IntRange(0, 5).Draw(g.T, "parts") {
		g.add("  %s", line())
	}
}

// write returns a request that may be part of a multi.
func (g *scriptGen) write() string {
	path := g.path()
	version := g.pick("", "", " version=0", " version=1", " version=2")
	switch g.pick("create", "create", "create2", "delete", "setData", "check", "ttl", "container") {
	case "create":
		return "create " + path + g.created()
	case "create2":
		return "create2 " + path + g.created()
	case "delete":
		return "delete " + path + version
	case "setData":
		return "setData " + path + g.pick("", " data=1", " data=22", " data=null") + version
	case "check":
		return "check " + path + version
	case "container":
		// With flags=e, ZooKeeper refuses a child in the same pipeline, as if a session
		// owned the container.
		return "createContainer " + path + g.pick(" flags=c", " flags=c", " flags=0") + g.acl()
	}
	return "createTTL " + path + " flags=" + g.pick("t", "ts") + " ttl=1000000"
}

func (g *scriptGen) created() string {
	return g.pick("", " data=x", " data=null") + g.pick("", "", " flags=e", " flags=s", " flags=es", " flags=c") + g.acl()
}

func (g *scriptGen) acl() string {
	return g.pick("", "", "", "", " acl=world:anyone:1", " acl=auth::31", " acl=world:anyone:31,auth::16", " acl=")
}

// simple returns a request that the release implements. After another one, ZooKeeper
// closes the connection, and may lose the events that it had not yet sent.
func (g *scriptGen) simple() string {
	request := g.request()
	op, _, _ := strings.Cut(request, " ")
	if g.like == zkserver.Release34 && slices.Contains(since35, op) {
		return "sync $"
	}
	return request
}

var since35 = strings.Fields("create2 createContainer createTTL checkWatches removeWatches addWatch setWatches2 getEphemerals getAllChildrenNumber multiRead")

func (g *scriptGen) request() string {
	path, watch := g.path(), g.pick("", " watch")
	switch k := rapid.IntRange(0, 22).Draw(g.T, "request"); k {
	case 0, 1, 2, 3, 4, 5, 6:
		// Before 3.9, ZooKeeper never answers a check outside a multi.
		if w := g.write(); !strings.HasPrefix(w, "check") {
			return w
		}
		return "sync " + path
	case 7, 8, 9:
		return "getData " + path + watch
	case 10, 11:
		return "exists " + path + watch
	case 12, 13:
		return g.pick("getChildren ", "getChildren2 ") + path + watch
	case 14:
		return "getACL " + path
	case 15:
		return "setACL " + path + g.acl()
	case 16:
		// checkWatches also finds the watches of other clients. It is unspecified when
		// ZooKeeper deletes the watches of a client that has hung up.
		if !g.open["a"] || !g.open["b"] {
			return "sync " + path
		}
		return g.pick("checkWatches ", "removeWatches ") + path + g.pick("", " kind=1", " kind=2", " kind=4", " kind=5")
	case 17:
		watches := fmt.Sprintf(" zxid=m data=%s,%s exist=%s child=%s", path, g.path(), g.path(), g.path())
		if rapid.Bool().Draw(g.T, "setWatches2") {
			return "setWatches2" + watches + " persistent=" + g.path() + " recursive=" + g.path()
		}
		return "setWatches" + watches
	case 18:
		return "sync " + path
	case 19:
		return "getEphemerals " + path
	case 20:
		return "getAllChildrenNumber " + path
	case 21:
		return "addWatch " + path + g.pick(" mode=0", " mode=1")
	default:
		return "exists " + path
	}
}

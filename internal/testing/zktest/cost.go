package zktest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Cost is the number of writes, reads and watch events that an operation costs the server.
type Cost struct{ Writes, Reads, Events int64 }

func (c Cost) String() string {
	return fmt.Sprintf("%d writes, %d reads, %d watch events", c.Writes, c.Reads, c.Events)
}

// CostOf returns what f costs the server.
func CostOf(srv *zkserver.Server, f func()) Cost {
	before := srv.Counters()
	f()
	d := srv.Counters().Sub(before)
	return Cost{d.Writes, d.Reads, d.WatchEvents}
}

// Costs checks what f costs the server.
func Costs(t *testing.T, srv *zkserver.Server, what string, writes, reads, events int64, f func()) {
	t.Helper()
	if got, want := CostOf(srv, f), (Cost{writes, reads, events}); got != want {
		t.Errorf("%s costs %v; want %v", what, got, want)
	}
}

// Idle is [IdleFor] for ten minutes, which are cheaper to simulate than an hour.
func Idle(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	IdleFor(t, srv, 10*time.Minute)
}

// IdleFor checks what sessions send in that much virtual time while all contenders wait. They
// may send pings. A session that holds anything may also confirm that: by a sync, and by an
// exists for each path with a hold.
func IdleFor(t *testing.T, srv *zkserver.Server, d time.Duration) {
	t.Helper()
	time.Sleep(10 * time.Second) // the first confirmation lists each path once
	synctest.Wait()
	before := srv.Counters()
	got := CostOf(srv, func() { time.Sleep(d); synctest.Wait() })
	sent := srv.Counters().Sub(before)
	syncs, inspections := sent.Requests[zkserver.OpSync], sent.Requests[zkserver.OpExists]
	if got.Reads -= inspections; got != (Cost{}) || inspections > syncs {
		t.Errorf("%v, %d syncs, and %d reads of held paths while all wait", got, syncs, inspections)
	}
	if sent.Pings+syncs == 0 {
		t.Error("neither pings nor syncs: no time has passed")
	}
}

// AwaitWatches waits until the server has n watches. A server does not report when a watch
// is set, so AwaitWatches polls.
func AwaitWatches(ctx context.Context, t *testing.T, srv *zkserver.Server, n int) {
	t.Helper()
	for srv.Watches() != n {
		if ctx.Err() != nil {
			t.Fatalf("%d watches; want %d", srv.Watches(), n)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

var guids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Layout lists the znodes below a path, by their paths relative to it.
func Layout(srv *zkserver.Server, path string) []string {
	var found []string
	for _, n := range srv.Tree() {
		if rest, ok := strings.CutPrefix(n.Path, path+"/"); ok {
			found = append(found, rest)
		}
	}
	return found
}

// Shape is the [Layout] in one line, without GUIDs.
func Shape(srv *zkserver.Server, path string) string {
	layout := strings.Fields(guids.ReplaceAllString(strings.Join(Layout(srv, path), " "), "<guid>"))
	slices.Sort(layout) // GUIDs sort at random
	return strings.Join(layout, " ")
}

// Between calls do, once, when the server is about to execute the first request of the
// session that matches. Other sessions are served while do runs. The function that it returns
// reports whether do was called.
func Between(srv *zkserver.Server, s recipes.Session, matches func(zkserver.Request) bool, do func()) (met func() bool) {
	done := make(chan struct{})
	met = func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.SessionID == s.ID() && matches(r) && !met() {
			close(done) // requests that do sends through s are served after this one
			do()
		}
		return zkserver.Fault{}
	})
	return met
}

// Op matches the requests of an operation whose path contains the parts.
func Op(op zkserver.Op, parts ...string) func(zkserver.Request) bool {
	return func(r zkserver.Request) bool {
		for _, part := range parts {
			if !strings.Contains(r.Path, part) {
				return false
			}
		}
		return r.Op == op
	}
}

// Nth matches the n-th request that another function matches.
func Nth(n int, matches func(zkserver.Request) bool) func(zkserver.Request) bool {
	seen := 0
	return func(r zkserver.Request) bool {
		if !matches(r) {
			return false
		}
		seen++
		return seen == n
	}
}

// Creates reports whether contenders create their znodes by this operation.
func Creates(op zkserver.Op) bool { return op == zkserver.OpCreate || op == zkserver.OpCreate2 }

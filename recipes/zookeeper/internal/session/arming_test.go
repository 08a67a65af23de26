package session

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// An attempt to set a watch that has already fired may end in any way. The znode's next watch
// reports the next event.
func TestAnAttemptThatEndsLateLeavesTheNextWatch(t *testing.T) {
	for _, armed := range []bool{false, true} {
		var ws watches
		key := watchKey{path: "/x"}
		first, _ := ws.join(key)
		ws.fire(conn.DataChanged, "/x") // before the reply was seen
		second, arm := ws.join(key)
		if second == first || !arm {
			t.Fatal("the next waiter got a watch that has fired")
		}
		ws.settle(key, second, true)
		ws.settle(key, first, armed)
		ws.fire(conn.NodeDeleted, "/x")
		if !Happened(second.Fired()) || second.Changed() || !first.Changed() {
			t.Error("the second watch did not fire for the second event")
		}
	}
}

// A watch that was not set is not kept. A watch that several callers set is kept as long as one
// of them may succeed.
func TestWatchesThatWereNotArmed(t *testing.T) {
	var ws watches
	key := watchKey{path: "/x", children: true}
	a, _ := ws.join(key)
	b, arm := ws.join(key)
	if a != b || !arm {
		t.Fatal("two callers must share a watch, and both set it")
	}
	ws.settle(key, a, false)
	if len(ws.byKey) != 1 {
		t.Error("the watch is dropped while an attempt may still set it")
	}
	ws.settle(key, b, false)
	if len(ws.byKey) != 0 {
		t.Error("a watch that was not set is kept")
	}
	d, _ := ws.join(key)
	ws.settle(key, d, true)
	if _, arm := ws.join(key); arm {
		t.Error("a watch that is set is set again")
	}
	ws.disconnected()
	if len(ws.byKey) != 0 {
		t.Error("a lost connection's watch is kept")
	}
}

// Two callers set a watch together. The server has it if either of them was answered.
func TestTwoCallersArmOneWatch(t *testing.T) {
	for _, test := range []struct{ first, second bool }{{true, false}, {false, true}, {true, true}, {false, false}} {
		var ws watches
		key := watchKey{path: "/x"}
		w, _ := ws.join(key)
		_, _ = ws.join(key)
		ws.settle(key, w, test.first)
		ws.settle(key, w, test.second)
		if _, arm := ws.join(key); arm == (test.first || test.second) {
			t.Errorf("%+v: the next one sets it: %v", test, arm)
		}
	}
}

// A watch of a connection that has ended never counts as set again. While a caller's request was
// in flight, another caller's watch on the next connection once was the same one. Then a znode
// that was deleted between the connections passed for watched: see deletionWatched.
func TestAWatchEndsWithItsConnection(t *testing.T) {
	for name, answered := range map[string][2]bool{
		"the first one":  {true, false},
		"the second one": {false, true},
	} {
		var ws watches
		key := watchKey{path: "/x"}
		before, _ := ws.join(key)
		_, _ = ws.join(key)
		ws.settle(key, before, answered[0])
		ws.disconnected()
		after, arm := ws.join(key)
		if after == before || !arm {
			t.Fatalf("%s: the next connection has the former watch", name)
		}
		ws.settle(key, after, true)
		ws.settle(key, before, answered[1])
		if ws.armed(key, before) || !ws.armed(key, after) {
			t.Errorf("%s: armed: %v and %v", name, ws.armed(key, before), ws.armed(key, after))
		}
		ws.fire(conn.NodeDeleted, "/x")
		if Happened(before.Fired()) || !Happened(after.Fired()) {
			t.Errorf("%s: the event fires the former watch", name)
		}
	}
}

// Events and the watches that they fire.
func TestEventsAndTheirWatches(t *testing.T) {
	for event, want := range map[conn.Event][2]bool{
		conn.NodeCreated:     {true, false},
		conn.DataChanged:     {true, false},
		conn.NodeDeleted:     {true, true},
		conn.ChildrenChanged: {false, true},
	} {
		var ws watches
		own, _ := ws.join(watchKey{path: "/x"})
		children, _ := ws.join(watchKey{path: "/x", children: true})
		other, _ := ws.join(watchKey{path: "/y"})
		ws.fire(event, "/x")
		if got := [2]bool{Happened(own.Fired()), Happened(children.Fired())}; got != want || Happened(other.Fired()) {
			t.Errorf("%v fires %v; want %v", event, got, want)
		}
		if own.Created() != (event == conn.NodeCreated) || own.Changed() != (event == conn.DataChanged) {
			t.Errorf("%v: changed %v, created %v", event, own.Changed(), own.Created())
		}
	}
}

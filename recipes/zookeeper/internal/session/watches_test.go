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
		first, _, connection := ws.join(key)
		ws.fire(conn.DataChanged, "/x") // before the reply was seen
		second, arm, _ := ws.join(key)
		if second == first || !arm {
			t.Fatal("the next waiter got a watch that has fired")
		}
		ws.settle(key, second, true, connection)
		ws.settle(key, first, armed, connection)
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
	a, _, connection := ws.join(key)
	b, arm, _ := ws.join(key)
	if a != b || !arm {
		t.Fatal("two callers must share a watch, and both set it")
	}
	ws.settle(key, a, false, connection)
	if len(ws.byKey) != 1 {
		t.Error("the watch is dropped while an attempt may still set it")
	}
	ws.settle(key, b, false, connection)
	if len(ws.byKey) != 0 {
		t.Error("a watch that was not set is kept")
	}
	c, _, connection := ws.join(key)
	ws.disconnected()
	if len(ws.byKey) != 1 {
		t.Error("the watch of an attempt in flight was dropped when the connection was lost")
	}
	ws.settle(key, c, true, connection)
	if len(ws.byKey) != 0 {
		t.Error("a watch of a lost connection counts on the next one")
	}
	d, _, connection := ws.join(key)
	ws.settle(key, d, true, connection)
	if _, arm, _ := ws.join(key); arm {
		t.Error("a watch that is set is set again")
	}
	ws.disconnected()
	if len(ws.byKey) != 0 {
		t.Error("a lost connection's watch is kept")
	}
}

// Two callers set a watch together. The server has it if either of them was answered on the
// current connection.
func TestTwoCallersArmOneWatch(t *testing.T) {
	for name, test := range map[string]struct {
		first, lost, second bool // armed, then the connection is lost, then armed
		arm                 bool // the next caller must set it
	}{
		"the first one":                        {first: true},
		"the second one":                       {second: true},
		"both":                                 {first: true, second: true},
		"neither":                              {arm: true},
		"the first one, on a lost connection":  {first: true, lost: true, arm: true},
		"the second one, on a lost connection": {lost: true, second: true, arm: true},
	} {
		var ws watches
		key := watchKey{path: "/x"}
		w, _, connection := ws.join(key)
		_, _, _ = ws.join(key)
		ws.settle(key, w, test.first, connection)
		if test.lost {
			ws.disconnected()
		}
		ws.settle(key, w, test.second, connection)
		if _, arm, _ := ws.join(key); arm != test.arm {
			t.Errorf("%s is answered: the next one sets it: %v", name, arm)
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
		own, _, _ := ws.join(watchKey{path: "/x"})
		children, _, _ := ws.join(watchKey{path: "/x", children: true})
		other, _, _ := ws.join(watchKey{path: "/y"})
		ws.fire(event, "/x")
		if got := [2]bool{Happened(own.Fired()), Happened(children.Fired())}; got != want || Happened(other.Fired()) {
			t.Errorf("%v fires %v; want %v", event, got, want)
		}
		if own.Created() != (event == conn.NodeCreated) || own.Changed() != (event == conn.DataChanged) {
			t.Errorf("%v: changed %v, created %v", event, own.Changed(), own.Created())
		}
	}
}

package session

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// An attempt to arm a watch that has fired may end in any way. The next watch of the znode
// is told of the next event.
func TestAnAttemptThatEndsLateLeavesTheNextWatch(t *testing.T) {
	for _, armed := range []bool{false, true} {
		var ws watches
		key := watchKey{path: "/x"}
		first, _, connection := ws.join(key)
		ws.fire(conn.DataChanged, "/x") // before the reply was seen
		second, arm, _ := ws.join(key)
		if second == first || !arm {
			t.Fatal("a watch that has fired was given to the next waiter")
		}
		ws.settle(key, second, true, connection)
		ws.settle(key, first, armed, connection)
		ws.fire(conn.NodeDeleted, "/x")
		if !Happened(second.Fired()) || second.Changed() || !first.Changed() {
			t.Error("the second watch was not told of the second event")
		}
	}
}

// A watch that nobody has armed is not kept, and one that several arm is kept as long as
// one of them may succeed.
func TestWatchesThatWereNotArmed(t *testing.T) {
	var ws watches
	key := watchKey{path: "/x", children: true}
	a, _, connection := ws.join(key)
	b, arm, _ := ws.join(key)
	if a != b || !arm {
		t.Fatal("two that look at the same share a watch, and both arm it")
	}
	ws.settle(key, a, false, connection)
	if len(ws.byKey) != 1 {
		t.Error("the watch is forgotten while one may still arm it")
	}
	ws.settle(key, b, false, connection)
	if len(ws.byKey) != 0 {
		t.Error("a watch that nobody has armed is kept")
	}
	c, _, connection := ws.join(key)
	ws.disconnected()
	if len(ws.byKey) != 1 {
		t.Error("an attempt was under way when the connection was lost, and its watch is forgotten")
	}
	ws.settle(key, c, true, connection)
	if len(ws.byKey) != 0 {
		t.Error("what was armed on a connection that is lost counts on the next")
	}
	d, _, connection := ws.join(key)
	ws.settle(key, d, true, connection)
	if _, arm, _ := ws.join(key); arm {
		t.Error("what is armed is armed again")
	}
	ws.disconnected()
	if len(ws.byKey) != 0 {
		t.Error("a lost connection's watch is kept")
	}
}

// Two arm a watch together. The server has it if either was answered, on the present
// connection.
func TestTwoThatArmAWatchTogether(t *testing.T) {
	for name, test := range map[string]struct {
		first, lost, second bool // armed, then the connection is lost, then armed
		arm                 bool // whoever comes next has to
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
			t.Errorf("%s is answered: the next one arms it: %v", name, arm)
		}
	}
}

// Which watches an event is for.
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

// A watch that was set on a connection that has been lost since is not armed,
// though the server has answered: who joins it has to arm it again.
func TestAWatchOfALostConnectionIsNotArmed(t *testing.T) {
	var ws watches
	key := watchKey{path: "/x"}
	w, arm, connection := ws.join(key)
	if !arm {
		t.Fatal("a new watch is armed")
	}
	ws.disconnected()
	ws.settle(key, w, true, connection)
	if _, arm, connection = ws.join(key); !arm {
		t.Error("the watch of the lost connection is taken for armed")
	}
	ws.settle(key, ws.byKey[key], true, connection)
	if _, arm, _ = ws.join(key); arm {
		t.Error("a watch that is armed is set again")
	}
}

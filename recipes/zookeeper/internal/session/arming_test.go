package session

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
)

// join joins a watch that no removal delays.
func join(t *testing.T, ws *watches, key watchKey) (w *Watch, arm bool) {
	t.Helper()
	w, arm, err := ws.join(t.Context(), key)
	must.Do(t, err)
	return w, arm
}

// The last context that waits for a creation ends. The watch is removed at the server only if it is
// set there and no request in flight sets it again: that one would be answered after the removal,
// and its caller would wait for an event that never comes.
func TestAWatchThatARequestSetsIsNotRemoved(t *testing.T) {
	key, done := watchKey{path: "/x"}, make(chan struct{})
	for name, test := range map[string]struct {
		armed, flight, other, fired bool
		want                        bool
	}{
		"set":                              {armed: true, want: true},
		"not set":                          {},
		"set, and a request is in flight":  {armed: true, flight: true},
		"a request is in flight":           {flight: true},
		"set, and another context waits":   {armed: true, other: true},
		"set, but it has fired in between": {armed: true, fired: true},
	} {
		var ws watches
		w, _ := join(t, &ws, key)
		if test.flight {
			join(t, &ws, key)
		}
		w.waits = map[<-chan struct{}]func() bool{done: nil}
		if test.other {
			w.waits[make(chan struct{})] = func() bool { return true }
		}
		ws.settle(key, w, test.armed)
		if test.fired {
			w.waits = nil
			ws.fire(conn.DataChanged, "/x")
		}
		if removes := ws.leave(key, w, done); removes != test.want || removes != (ws.removing[key] != nil) || Happened(w.Fired()) != (test.want || test.fired) {
			t.Errorf("%s: removed %v, fired %v", name, removes, Happened(w.Fired()))
		}
	}
}

// A watch cannot be joined while its removal is in flight. A caller whose context ends does not
// wait for it, and joins nothing.
func TestJoiningAWatchEndsWithItsContext(t *testing.T) {
	key := watchKey{path: "/x"}
	ws := watches{removing: map[watchKey]chan struct{}{key: make(chan struct{})}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w, arm, err := ws.join(ctx, key); w != nil || arm || !errors.Is(err, context.Canceled) || len(ws.byKey) > 0 {
		t.Errorf("joined %v, %v, %v", w, arm, err)
	}
	ws.removed(key)
	if _, arm := join(t, &ws, key); !arm {
		t.Error("after the removal the watch is not set")
	}
}

// An attempt to set a watch that has already fired may end in any way. The znode's next watch
// reports the next event.
func TestAnAttemptThatEndsLateLeavesTheNextWatch(t *testing.T) {
	for _, armed := range []bool{false, true} {
		var ws watches
		key := watchKey{path: "/x"}
		first, _ := join(t, &ws, key)
		ws.fire(conn.DataChanged, "/x") // before the reply was seen
		second, arm := join(t, &ws, key)
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
	a, _ := join(t, &ws, key)
	b, arm := join(t, &ws, key)
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
	d, _ := join(t, &ws, key)
	ws.settle(key, d, true)
	if _, arm := join(t, &ws, key); arm {
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
		w, _ := join(t, &ws, key)
		_, _ = join(t, &ws, key)
		ws.settle(key, w, test.first)
		ws.settle(key, w, test.second)
		if _, arm := join(t, &ws, key); arm == (test.first || test.second) {
			t.Errorf("%+v: the next one sets it: %v", test, arm)
		}
	}
}

// A watch of a connection that has ended never counts as set again. Once, while a caller's request
// was in flight, another caller's watch on the next connection was the same object. A znode that
// was deleted between the connections then counted as watched: see deletionWatched.
func TestAWatchEndsWithItsConnection(t *testing.T) {
	for name, answered := range map[string][2]bool{
		"the first one":  {true, false},
		"the second one": {false, true},
	} {
		var ws watches
		key := watchKey{path: "/x"}
		before, _ := join(t, &ws, key)
		_, _ = join(t, &ws, key)
		ws.settle(key, before, answered[0])
		ws.disconnected()
		after, arm := join(t, &ws, key)
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
		own, _ := join(t, &ws, watchKey{path: "/x"})
		children, _ := join(t, &ws, watchKey{path: "/x", children: true})
		other, _ := join(t, &ws, watchKey{path: "/y"})
		ws.fire(event, "/x")
		if got := [2]bool{Happened(own.Fired()), Happened(children.Fired())}; got != want || Happened(other.Fired()) {
			t.Errorf("%v fires %v; want %v", event, got, want)
		}
		if own.Created() != (event == conn.NodeCreated) || own.Changed() != (event == conn.DataChanged) {
			t.Errorf("%v: changed %v, created %v", event, own.Changed(), own.Created())
		}
	}
}

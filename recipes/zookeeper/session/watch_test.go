package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/session"
)

func fired(t *testing.T, w *session.Watch) {
	t.Helper()
	select {
	case <-w.Fired():
	case <-time.After(20 * time.Second):
		t.Fatal("the watch does not fire")
	}
}

func notFired(t *testing.T, w *session.Watch) {
	t.Helper()
	select {
	case <-w.Fired():
		t.Fatal("the watch has fired")
	default:
	}
}

// CURATOR-14, 332, kazoo#175: watches that nobody waits for piled up.
func TestAbandonedWaitsShareOneWatch(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), bounded(t)
	path, err := s.CreateProtected(ctx, "/w", "lock-", nil)
	if err != nil {
		t.Fatal(err)
	}
	var last *session.Watch
	for range 50 {
		if _, last, err = s.GetW(ctx, path); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.Watches(); n != 1 {
		t.Errorf("%d watches at the server", n)
	}
	if err := <-s.Delete(path); err != nil {
		t.Fatal(err)
	}
	fired(t, last)
	if n := s.Counters().WatchEvents; n != 1 {
		t.Errorf("%d watch events", n)
	}
}

// kazoo 9b0a793: a look at what has gone left a watch for a creation.
func TestALookAtAVanishedNodeLeavesNoWatch(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	if _, _, err := s.GetW(bounded(t), "/gone"); !errors.Is(err, recipes.ErrNoNode) {
		t.Fatalf("got %v", err)
	}
	if n := srv.Watches(); n != 0 {
		t.Errorf("%d watches at the server", n)
	}
}

// kazoo#170, CURATOR-623 and others: after a suspension the watch was gone.
// ZOOKEEPER-4655: re-arming it relative to too late a transaction skipped a
// change.
func TestWatchesSurviveAReconnect(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), bounded(t)
	path, err := other.CreateProtected(ctx, "/r", "lock-", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, node, err := s.GetW(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	_, children, err := s.ChildrenW(ctx, "/r")
	if err != nil {
		t.Fatal(err)
	}
	// Nothing has changed: they must not fire, and stay armed.
	cutAndWait(t, srv, s)
	if _, err := s.Get(ctx, path); err != nil {
		t.Fatal(err)
	}
	notFired(t, node)
	notFired(t, children)

	// What changes while the session is away is told when it is back.
	gone, err := s.Connected(ctx)
	if err != nil {
		t.Fatal(err)
	}
	srv.RefuseConnections(true)
	srv.CloseConnection(s.ID())
	<-gone
	if err := <-other.Delete(path); err != nil {
		t.Fatal(err)
	}
	srv.RefuseConnections(false)
	fired(t, node)
	fired(t, children)
}

// go-zookeeper's event channel holds six and drops silently.
func TestAFloodOfEventsLosesNone(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), bounded(t)
	const n = 200
	var paths []string
	var watches []*session.Watch
	for range n {
		path, err := other.CreateProtected(ctx, "/flood", "lock-", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, w, err := s.GetW(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		paths, watches = append(paths, path), append(watches, w)
	}
	for _, path := range paths {
		other.Delete(path)
	}
	for _, w := range watches {
		fired(t, w)
	}
}

func TestOneWatchServesEveryKindOfLook(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), bounded(t)
	exists, created, err := s.ExistsW(ctx, "/k")
	if err != nil || exists {
		t.Fatal(exists, err)
	}
	path, err := s.CreateProtected(ctx, "/k", "lock-", nil)
	if err != nil {
		t.Fatal(err)
	}
	fired(t, created)
	if exists, _, err = s.ExistsW(ctx, path); err != nil || !exists {
		t.Fatal(exists, err)
	}
	_, w, err := s.GetW(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-s.Delete(path); err != nil {
		t.Fatal(err)
	}
	fired(t, w)
}

func TestCancelledLookReturnsAtOnce(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	srv.Freeze(true)
	defer srv.Freeze(false)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for i := range 30 { // more than go-zookeeper queues
		if _, _, err := s.GetW(ctx, fmt.Sprintf("/n%d", i)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
}

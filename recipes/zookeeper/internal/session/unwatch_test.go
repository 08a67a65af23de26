package session_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/fourletter"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// awaitWatches waits until count returns n.
func awaitWatches(t *testing.T, n int, count func() int) {
	t.Helper()
	for ctx := zktest.Bounded(t); count() != n; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d watches; want %d", count(), n)
		}
	}
}

func absent(t *testing.T, ctx context.Context, s *session.Session, path string) *session.Watch {
	t.Helper()
	exists, watch, err := s.ExistsW(ctx, path)
	if err != nil || exists {
		t.Fatalf("%s exists: %v, %v", path, exists, err)
	}
	return watch
}

// A watch for a znode that is never created ends with its last waiter.
func TestAWatchForACreationEndsWithItsWaits(t *testing.T) {
	check := func(t *testing.T, cfg recipes.SessionConfig, count func() int) {
		s := open(t, cfg)
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		defer cancelSecond()
		absent(t, first, s, "/never")
		absent(t, first, s, "/never") // a second read
		last := absent(t, second, s, "/never")
		awaitWatches(t, 1, count)
		cancelFirst()
		absent(t, second, s, "/other")
		awaitWatches(t, 2, count)
		if session.Happened(last.Fired()) {
			t.Error("the other waiter's watch has fired")
		}
		cancelSecond()
		awaitWatches(t, 0, count)
		<-last.Fired()
		again := absent(t, t.Context(), s, "/never")
		must.Get(s.CreateNamed(zktest.Bounded(t), "/never", nil))(t)
		<-again.Fired()
		if !again.Created() {
			t.Error("the watch has not fired for the creation")
		}
		awaitWatches(t, 0, count)
	}
	t.Run("embedded", func(t *testing.T) {
		srv := embedded(t)
		check(t, to(srv), srv.Watches)
	})
	t.Run("real", func(t *testing.T) {
		server := ensembletest.Start(t, ensembletest.Quick(1)).Server(0)
		check(t, recipes.SessionConfig{Servers: []string{server.Addr()}}, func() int {
			figures := fourletter.Pairs(must.Get(server.Word(t.Context(), "mntr"))(t), "\t")
			return must.Get(strconv.Atoi(figures["zk_watch_count"]))(t)
		})
	})
}

// The memory of a watch that does not fire grows neither with the reads of its waiters nor with
// waiters that have left.
func TestAWatchForACreationKeepsOnlyItsWaits(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	for range 3 {
		absent(t, t.Context(), s, "/never")
		short, cancel := context.WithCancel(t.Context())
		absent(t, short, s, "/never")
		absent(t, short, s, "/never")
		if n := s.Waits("/never"); n != 2 {
			t.Errorf("%d waits; want 2", n)
		}
		cancel()
		awaitWatches(t, 1, func() int { return s.Waits("/never") })
	}
	if n := srv.Watches(); n != 1 {
		t.Errorf("%d watches at the server; want 1", n)
	}
}

// Any answer to the creation of a parent shows whether the server supports removing watches.
// The session then does not probe.
func TestACreatedParentShowsWhetherWatchesCanBeRemoved(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	closed := to(srv)
	closed.ACL = []recipes.ACL{{Permissions: recipes.PermRead, Scheme: "world", ID: "anyone"}}
	must.Do(t, open(t, closed).Create(ctx, "/closed", nil))
	for _, tt := range []struct {
		path string
		want error
		asks int64
	}{
		{"/new", nil, 0},
		{"/zookeeper", nil, 0}, // exists
		{"/closed/x", recipes.ErrAccessDenied, 0},
		{"", nil, 1},
	} {
		s := open(t, to(srv))
		if tt.path != "" {
			if err := s.Ensure(ctx, tt.path); !errors.Is(err, tt.want) {
				t.Fatalf("%s: %v", tt.path, err)
			}
		}
		before := srv.Counters().Requests[zkserver.OpMulti]
		waiting, cancel := context.WithCancel(ctx)
		absent(t, waiting, s, "/never")
		cancel()
		awaitWatches(t, 0, srv.Watches)
		if n := srv.Counters().Requests[zkserver.OpMulti] - before; n != tt.asks {
			t.Errorf("after %q it asked %d times; want %d", tt.path, n, tt.asks)
		}
	}
}

// If a server throttles the removal, or the probe before it, the session sends it again.
func TestAThrottledRemovalIsSentAgain(t *testing.T) {
	for _, op := range []zkserver.Op{zkserver.OpMulti, zkserver.OpRemoveWatches} {
		srv := embedded(t)
		s := open(t, to(srv))
		met := at(srv, op, faultOf(zkserver.Fault{Throttle: true}))
		ctx, cancel := context.WithCancel(t.Context())
		absent(t, ctx, s, "/never")
		cancel()
		awaitWatches(t, 0, srv.Watches)
		if !met() {
			t.Errorf("%v was not throttled", op)
		}
	}
}

// A server before 3.5 closes a connection that sends a removal. Its watches remain.
func TestAServerBefore35IsNotAskedToRemoveAWatch(t *testing.T) {
	srv := must.Get(zkserver.Listen(zkserver.Config{Like: zkserver.Release34}))(t)
	t.Cleanup(func() { srv.Close() })
	s := open(t, to(srv))
	asked := make(chan struct{}, 1)
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpMulti {
			asked <- struct{}{}
		}
		return zkserver.Fault{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	absent(t, ctx, s, "/never")
	cancel()
	<-asked
	absent(t, t.Context(), s, "/never") // after the removal, or the request in its place
	if n := srv.Watches(); n != 1 || s.Counters().Reconnects != 0 {
		t.Errorf("%d watches and %d reconnects; want 1 and none", n, s.Counters().Reconnects)
	}
}

// Two waiters wait for one creation, and one of them gives up at any moment. The other one
// wakes.
func TestARemovalTakesNoWakeUp(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), zktest.Bounded(t)
	for n := range 300 {
		path := fmt.Sprintf("/n-%d", n)
		first, cancel := context.WithCancel(ctx)
		absent(t, first, s, path)
		var all sync.WaitGroup
		all.Go(cancel)
		waiting := make(chan struct{})
		all.Go(func() {
			for reported := false; ; {
				exists, watch, err := s.ExistsW(ctx, path)
				must.Report(t, err)
				if !reported {
					close(waiting)
					reported = true
				}
				if exists || err != nil || s.Wait(ctx, path, watch.Fired()) != nil {
					break
				}
			}
			if ctx.Err() != nil {
				t.Errorf("%s: not woken", path)
			}
		})
		all.Go(func() {
			<-waiting
			if _, err := other.CreateNamed(ctx, path, nil); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// A read sets no watch at the server unless the caller waits for it: an unneeded watch could
// not be removed.
func TestAReadLeavesNoWatch(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	must.Get(s.CreateNamed(ctx, "/x", nil))(t)
	must.Do(t, s.Ensure(ctx, "/line")) // so that the lost reply is that of a bare znode
	lost := at(srv, zkserver.OpCreate2, faultOf(zkserver.Fault{DropReply: true}))
	for name, read := range map[string]func() error{
		"Get":        func() error { _, err := s.Get(ctx, "/x"); return err },
		"Stat":       func() error { _, err := s.Stat(ctx, "/x"); return err },
		"Stat, none": func() error { _, _ = s.Stat(ctx, "/none"); return nil },
		"Children":   func() error { _, err := s.Children(ctx, "/"); return err },
		"List":       func() error { _, _, err := s.List(ctx, "/"); return err },
		"GetOwn":     func() error { _, err := s.GetOwn(ctx, "/x"); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := srv.Watches(); n != 0 {
			t.Errorf("%s leaves %d watches", name, n)
		}
	}
	for range 3 {
		place, _, err := s.CreateBare(ctx, "/line", "lock-", nil, true, s.EnsureQueuePath)
		if err := errors.Join(err, <-s.DeleteBare(place)); err != nil || !lost() {
			t.Errorf("%v (met: %v)", err, lost())
		}
	}
	if n := srv.Watches(); n != 1 {
		t.Errorf("%d watches are left; want one, on the wait queue", n)
	}
}

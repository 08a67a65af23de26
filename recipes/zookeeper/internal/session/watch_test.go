package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/conn"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

func fired(t *testing.T, w *session.Watch) {
	t.Helper()
	select {
	case <-w.Fired():
	case <-time.After(watchdog.Patience):
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

// CURATOR-14, 332, kazoo#175: watches of abandoned waits piled up.
func TestAbandonedWaitsShareOneWatch(t *testing.T) {
	srv := embedded(t)
	s, ctx := open(t, to(srv)), zktest.Bounded(t)
	path := must.Get(s.CreateProtected(ctx, "/w", "lock-", nil))(t)
	var last *session.Watch
	for range 50 {
		var err error
		_, last, err = s.GetW(ctx, path)
		must.Do(t, err)
	}
	if n := srv.Watches(); n != 1 {
		t.Errorf("%d watches at the server", n)
	}
	must.Do(t, <-s.Delete(path))
	fired(t, last)
	if n := s.Counters().WatchEvents; n != 1 {
		t.Errorf("%d watch events", n)
	}
}

// kazoo 9b0a793: reading a deleted znode left a watch for its creation.
func TestAReadOfADeletedZnodeLeavesNoWatch(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	if _, _, err := s.GetW(zktest.Bounded(t), "/gone"); !errors.Is(err, recipes.ErrNoNode) {
		t.Fatalf("got %v", err)
	}
	if n := srv.Watches(); n != 0 {
		t.Errorf("%d watches at the server", n)
	}
}

// kazoo#170, CURATOR-623 and others: after a suspension the watch was missing. A waiter that
// reads again after a reconnect has a watch that fires, however many watches there are.
// go-zookeeper sets them again in packets that may exceed its buffer, and does not report that
// failure.
func TestAReaderAfterAReconnectIsWoken(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10 // room for some 80 watches
	s, other, ctx := open(t, cfg), open(t, to(srv)), zktest.Bounded(t)
	const n = 200
	var paths []string
	readAll := func() (watches []*session.Watch) {
		for _, path := range paths {
			_, w, err := s.GetW(ctx, path)
			must.Do(t, err)
			watches = append(watches, w)
		}
		return watches
	}
	for i := range n {
		path := must.Get(other.CreateProtected(ctx, fmt.Sprintf("/r%d", i), "lock-", nil))(t)
		paths = append(paths, path)
	}
	readAll()
	cutAndWait(t, srv, s)
	watches := readAll()
	if n := srv.Counters().Requests[zkserver.OpSetWatches]; n != 0 {
		t.Errorf("watches were set again %d times: their events may be older than a read", n)
	}
	for _, w := range watches {
		notFired(t, w)
	}
	for _, path := range paths {
		other.Delete(path)
	}
	for _, w := range watches {
		fired(t, w)
	}
}

// A change while the session is disconnected is found by the read after the reconnect
// (ZOOKEEPER-4655: setting the watch again missed it).
func TestAChangeDuringASuspensionIsSeen(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), zktest.Bounded(t)
	path := must.Get(other.CreateProtected(ctx, "/s", "lock-", nil))(t)
	if _, _, err := s.GetW(ctx, path); err != nil {
		t.Fatal(err)
	}
	gone := must.Get(s.Connected(ctx))(t)
	srv.RefuseConnections(true)
	srv.CloseConnection(s.ID())
	<-gone
	must.Do(t, <-other.Delete(path))
	srv.RefuseConnections(false)
	if _, _, err := s.GetW(ctx, path); !errors.Is(err, recipes.ErrNoNode) {
		t.Fatalf("after the reconnect: %v", err)
	}
}

// go-zookeeper's event channel has room for six events and drops others silently.
func TestAFloodOfEventsLosesNone(t *testing.T) {
	srv := embedded(t)
	s, other, ctx := open(t, to(srv)), open(t, to(srv)), zktest.Bounded(t)
	const n = 200
	var paths []string
	var watches []*session.Watch
	for range n {
		path := must.Get(other.CreateProtected(ctx, "/flood", "lock-", nil))(t)
		_, w, err := s.GetW(ctx, path)
		must.Do(t, err)
		paths, watches = append(paths, path), append(watches, w)
	}
	for _, path := range paths {
		other.Delete(path)
	}
	for _, w := range watches {
		fired(t, w)
	}
}

func TestACancelledReadReturnsAtOnce(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	srv.Freeze(true)
	defer srv.Freeze(false)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for i := range 30 { // more events than go-zookeeper queues
		if _, _, err := s.GetW(ctx, fmt.Sprintf("/n%d", i)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
}

// One session waits, and watches its own znode for deletion. Another one waits behind it and
// watches the same znode. The waiter behind is notified of the handoff, the owner only of the
// deletion.
func TestWatchesOfOnePlaceAreKeptApart(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	for name, own := range map[string]func(place session.BareZnode) (*session.Watch, error){
		"PlaceW": func(place session.BareZnode) (*session.Watch, error) { return s.BareW(ctx, place) },
		"Predecessor": func(place session.BareZnode) (*session.Watch, error) {
			_, _, own, err := s.Predecessor(ctx, place, "/")
			return own, err
		},
		"DeletionW": func(place session.BareZnode) (*session.Watch, error) {
			_, own, err := s.DeletionW(ctx, place.Path)
			return own, err
		},
	} {
		var places [2]session.BareZnode
		var err error
		for i := range places {
			places[i] = bare(t, s, "/line")
		}
		mine, err := own(places[0])
		must.Do(t, err)
		_, ahead, _, err := s.Predecessor(ctx, places[1], places[0].Path)
		must.Do(t, err)
		must.Do(t, <-s.Handoff(ctx, places[0]))
		fired(t, ahead)
		fired(t, mine)
		if !ahead.Changed() || mine.Changed() {
			t.Errorf("%s: the waiter behind saw a handoff: %v; the owner: %v", name, ahead.Changed(), mine.Changed())
		}
		must.Do(t, <-s.DeleteBare(places[1]))
	}
}

// The session keeps a watch as long as the server has it: not after a read that failed, and not
// after the connection was lost.
func TestWatchesAreForgotten(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	place := bare(t, s, "/line")
	must.Get(s.CreateNamed(ctx, "/line/x", nil))(t)
	for name, test := range map[string]struct {
		read       func(path string)
		kept, none int // watches on an existing path, and on a missing one
	}{
		"GetW":        {func(path string) { _, _, _ = s.GetW(ctx, path) }, 1, 0},
		"ExistsW":     {func(path string) { _, _, _ = s.ExistsW(ctx, path) }, 1, 1},
		"ChildrenW":   {func(path string) { _, _, _ = s.ChildrenW(ctx, path) }, 1, 0},
		"DeletionW":   {func(path string) { _, _, _ = s.DeletionW(ctx, path) }, 1, 0},
		"PlaceW":      {func(string) { _, _ = s.BareW(ctx, place) }, 1, 1},
		"Predecessor": {func(path string) { _, _, _, _ = s.Predecessor(ctx, place, path) }, 2, 1}, // it also watches the caller's own znode
	} {
		for path, want := range map[string]int{"/line/x": test.kept, "/line/none": test.none} {
			cutAndWait(t, srv, s)
			if n := s.WatchesKept(); n != 0 {
				t.Errorf("%s: %d watches of a lost connection are kept", name, n)
			}
			for range 2 {
				test.read(path)
			}
			if n := s.WatchesKept(); n != want {
				t.Errorf("%s of %s: %d watches are kept; want %d", name, path, n, want)
			}
		}
	}
	cutAndWait(t, srv, s)
	if n := s.WatchesKept(); n != 0 {
		t.Errorf("%d watches of a lost connection are kept", n)
	}
}

// Two watches that are needed together are set on one connection, even if it is replaced between
// them.
func TestAPredecessorIsWatchedOnTheConnectionOfTheOwnWatch(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ctx := t.Context()
		ahead, place := bare(t, s, "/line"), bare(t, s, "/line")
		must.Get(s.BareW(ctx, place))(t)
		proceed := s.DelayWatch(ahead.Path)
		watched := make(chan error)
		var own *session.Watch
		go func() {
			var err error
			_, _, own, err = s.Predecessor(ctx, place, ahead.Path)
			watched <- err
		}()
		synctest.Wait() // the waiter has joined its own watch
		cutAndWait(t, srv, s)
		proceed()
		must.Do(t, <-watched)
		must.Do(t, s.DeleteOnce(ctx, place.Path, -1))
		synctest.Wait()
		if !session.Happened(own.Fired()) {
			t.Error("only its predecessor is watched")
		}
	})
}

// What was found about the watches of a connection says nothing about the next one.
func TestNothingIsSentOnALaterConnectionThanItsWatches(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	err := s.SendAfter(zktest.Bounded(t), func() error { cutAndWait(t, srv, s); return nil })
	if !errors.Is(err, conn.ErrNotSent) {
		t.Errorf("got %v", err)
	}
}

// A read that gives up leaves its turn to the next one, and the end of the session ends its wait.
func TestACancelledReadGivesItsTurnBack(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, _ *zkserver.Server, s *session.Session) {
		s.Pace(1)
		must.Get(s.Stat(t.Context(), "/"))(t)
		start := time.Now()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			if _, err := s.Stat(cancelled, "/"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		must.Get(s.Stat(t.Context(), "/"))(t)
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the next read waits %s", waited)
		}
		result := make(chan error)
		go func() {
			_, err := s.Stat(t.Context(), "/")
			result <- err
		}()
		synctest.Wait()
		start = time.Now()
		closeNow(s)
		if err := <-result; !errors.Is(err, recipes.ErrClosed) || time.Since(start) > time.Second/2 {
			t.Errorf("%s after the end of the session: %v", time.Since(start), err)
		}
	})
}

package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// inspecting runs test in a bubble, with a session that holds something and inspects the paths. made
// creates a child of a path by another session. seen returns, for each path, the number of children
// in the record of the latest check, and the number of checks.
func inspecting(t *testing.T, paths []string, test func(t *testing.T, srv *zkserver.Server, s *session.Session, make func(path string), seen func() map[string][2]int)) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		other := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10}, dialPipe(srv)))(t)
		defer closeNow(other)
		for _, path := range paths {
			must.Do(t, other.Create(t.Context(), path, nil))
		}
		beginHold(t, s)
		defer s.EndHold()
		checks := map[string][2]int{} // one goroutine calls all checks
		for _, path := range paths {
			i := s.Inspect(path, func(_ *session.Inspection, stat session.Stat) {
				checks[path] = [2]int{int(stat.NumChildren), checks[path][1] + 1}
			})
			defer i.Stop()
		}
		children := 0
		test(t, srv, s, func(path string) {
			children++
			must.Do(t, other.Create(t.Context(), fmt.Sprintf("%s/%d", path, children), nil))
		}, func() map[string][2]int {
			synctest.Wait()
			return checks
		})
	})
}

// beat waits for one more confirmation.
func beat(s *session.Session) { time.Sleep(s.Timeout() / 10) }

// After its first check, a path costs nothing until a child is created or deleted. It is then
// checked once with the next confirmation, however many children there were.
func TestAPathIsInspectedWhenItsChildrenChange(t *testing.T) {
	inspecting(t, []string{"/x", "/y"}, func(t *testing.T, srv *zkserver.Server, s *session.Session, create func(string), seen func() map[string][2]int) {
		beat(s)
		want := map[string][2]int{"/x": {0, 1}, "/y": {0, 1}}
		for round := range 3 {
			if got := seen(); got["/x"] != want["/x"] || got["/y"] != want["/y"] {
				t.Fatalf("in round %d, children and checks are %v; want %v", round, got, want)
			}
			before := srv.Counters()
			time.Sleep(3*s.Timeout() + time.Millisecond) // so the creations do not coincide with a beat
			after := srv.Counters()
			for _, op := range []zkserver.Op{zkserver.OpExists, zkserver.OpSetWatches} {
				if n := after.Requests[op] - before.Requests[op]; n != 0 {
					t.Errorf("in round %d, %d requests %v while nothing happened", round, n, op)
				}
			}
			for range 5 {
				create("/x")
			}
			beat(s)
			want["/x"] = [2]int{5 * (round + 1), round + 2}
		}
	})
}

// Holds at one path share its reads, and each of them sees the record.
func TestInspectionsOfOnePathShareARead(t *testing.T) {
	inspecting(t, []string{"/x"}, func(t *testing.T, srv *zkserver.Server, s *session.Session, create func(string), _ func() map[string][2]int) {
		var seen [2]int
		var more [2]*session.Inspection
		for n := range more {
			more[n] = s.Inspect("/x", func(*session.Inspection, session.Stat) { seen[n]++ })
		}
		before := srv.Counters().Requests[zkserver.OpExists]
		beat(s)
		synctest.Wait()
		more[0].Stop()
		create("/x")
		beat(s)
		synctest.Wait()
		more[1].Stop()
		if n := srv.Counters().Requests[zkserver.OpExists] - before; n < 2 || n > 3 || seen != [2]int{1, 2} {
			t.Errorf("%d reads, seen %v", n, seen) // the session that creates the child reads too
		}
	})
}

// A child is created at every moment of a check: before the watch is set, between the watch and the
// read, and after the read. The present check or the next one sees it.
func TestNoChangeFallsBetweenAWatchAndARead(t *testing.T) {
	for _, op := range []zkserver.Op{zkserver.OpSync, zkserver.OpSetWatches, zkserver.OpExists} {
		inspecting(t, []string{"/x"}, func(t *testing.T, srv *zkserver.Server, s *session.Session, create func(string), seen func() map[string][2]int) {
			met := false
			srv.SetFault(func(r zkserver.Request) zkserver.Fault {
				if r.SessionID == s.ID() && r.Op == op && !met {
					met = true
					create("/x")
				}
				return zkserver.Fault{}
			})
			beat(s)
			beat(s)
			if got := seen()["/x"]; !met || got[0] != 1 {
				t.Errorf("created before %v (%v): the latest of %d checks saw %d children", op, met, got[1], got[0])
			}
		})
	}
}

// When a connection ends, its watches end. Changes without a connection are seen after the
// reconnect.
func TestPathsAreInspectedAgainOnTheNextConnection(t *testing.T) {
	inspecting(t, []string{"/x", "/y"}, func(t *testing.T, srv *zkserver.Server, s *session.Session, create func(string), seen func() map[string][2]int) {
		beat(s)
		seen()
		gone := must.Get(s.Connected(t.Context()))(t)
		srv.CloseConnection(s.ID())
		<-gone
		create("/x")
		must.Get(s.Connected(t.Context()))(t)
		beat(s)
		if got := seen(); got["/x"] != [2]int{1, 2} || got["/y"] != [2]int{0, 2} {
			t.Errorf("children and checks are %v", got)
		}
		create("/y")
		beat(s)
		if got := seen(); got["/x"] != [2]int{1, 2} || got["/y"] != [2]int{1, 3} {
			t.Errorf("on the next connection, children and checks are %v", got)
		}
	})
}

// Nothing can be sent for several confirmations, because no server accepts a connection. The paths are
// inspected when one does.
func TestPathsAreInspectedAfterAnOutage(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		var outage time.Time // when the outage ends
		s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10},
			func(context.Context, string, string) (net.Conn, error) {
				if time.Now().Before(outage) {
					return nil, errors.New("refused")
				}
				return pipe(srv), nil
			}))(t)
		defer closeNow(s)
		beginHold(t, s)
		defer s.EndHold()
		checks := 0
		defer s.Inspect("/", func(*session.Inspection, session.Stat) { checks++ }).Stop()
		beat(s)
		synctest.Wait()
		outage = time.Now().Add(s.Timeout() / 4)
		gone := must.Get(s.Connected(t.Context()))(t)
		srv.CloseConnection(s.ID())
		<-gone
		must.Get(s.Connected(t.Context()))(t)
		beat(s)
		synctest.Wait()
		if checks != 2 {
			t.Errorf("%d checks; want one before the outage and one after it", checks)
		}
	})
}

// A server throttles the request for a watch, or the read, or the connection ends before one of
// them is answered. The path is checked again, and watched.
func TestAnInspectionThatFailsIsRepeated(t *testing.T) {
	for name, fault := range map[string]zkserver.Fault{"throttled": {Throttle: true}, "not sent": {CloseBefore: true}, "not answered": {DropReply: true}} {
		for _, op := range []zkserver.Op{zkserver.OpSetWatches, zkserver.OpExists} {
			inspecting(t, []string{"/x"}, func(t *testing.T, srv *zkserver.Server, s *session.Session, create func(string), seen func() map[string][2]int) {
				met := 0
				srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
					if r.SessionID == s.ID() && r.Op == op && met < 2 {
						met++
						f = fault
					}
					return f
				})
				time.Sleep(s.Timeout()) // reconnecting takes a second
				before := seen()["/x"]
				create("/x")
				beat(s)
				if got := seen()["/x"]; met != 2 || before[1] == 0 || got != [2]int{1, before[1] + 1} {
					t.Errorf("%v %s %d times: children and checks were %v and are %v", op, name, met, before, got)
				}
			})
		}
	}
}

// However many paths are due, a confirmation reads at most a tenth of them, or a thousand. So all
// paths get their first check within a timeout, and are all checked again within a timeout after a
// reconnect.
func TestInspectionsAreSpread(t *testing.T) {
	for _, n := range []int{2500, 15_000} {
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
			beginHold(t, s)
			defer s.EndHold()
			checks, all := make([]atomic.Int64, n), make([]*session.Inspection, n)
			leastChecked := func() (least int64) {
				least = checks[0].Load()
				for k := range checks {
					least = min(least, checks[k].Load())
				}
				return least
			}
			var made session.Txn
			for k := range checks {
				path := fmt.Sprintf("/%d", k)
				if made.Create(path, nil, false); made.Len() == 100 {
					must.Do(t, s.Commit(t.Context(), made))
					made = session.Txn{}
				}
				all[k] = s.Inspect(path, func(*session.Inspection, session.Stat) { checks[k].Add(1) })
			}
			defer func() {
				for _, i := range all {
					i.Stop()
				}
			}()
			for round := range int64(2) {
				begun := time.Now()
				for read := srv.Counters().Requests[zkserver.OpExists]; leastChecked() <= round; {
					beat(s)
					synctest.Wait()
					now := srv.Counters().Requests[zkserver.OpExists]
					if most := int64(max(1000, n/10+1)); now-read > most {
						t.Errorf("of %d paths, %d were read with a confirmation; want %d at most", n, now-read, most)
					}
					read = now
					if took := time.Since(begun); took > s.Timeout()+s.Timeout()/5 {
						t.Fatalf("of %d paths, some are not checked after %v", n, took)
					}
				}
				gone := must.Get(s.Connected(t.Context()))(t)
				srv.CloseConnection(s.ID())
				<-gone
				must.Get(s.Connected(t.Context()))(t)
			}
		})
	}
}

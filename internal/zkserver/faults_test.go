package zkserver_test

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// onCreate gives every create the same fault.
func onCreate(f zkserver.Fault) func(zkserver.Request) zkserver.Fault {
	return func(r zkserver.Request) zkserver.Fault {
		if r.Op == zkserver.OpCreate {
			return f
		}
		return zkserver.Fault{}
	}
}

func TestFaultsOfOneRequest(t *testing.T) {
	for _, test := range []struct {
		name             string
		fault            zkserver.Fault
		executed, answer bool // the create
		sessionLives     bool
		connectionLives  bool
	}{
		{"nothing", zkserver.Fault{}, true, true, true, true},
		{"CloseBefore", zkserver.Fault{CloseBefore: true}, false, false, true, false},
		{"Throttle", zkserver.Fault{Throttle: true}, false, false, true, true},
		{"DropReply", zkserver.Fault{DropReply: true}, true, false, true, false},
		{"CloseAfter", zkserver.Fault{CloseAfter: true}, true, true, true, false},
		{"ExpireBefore", zkserver.Fault{ExpireBefore: true}, false, false, false, false},
		{"ExpireAfter", zkserver.Fault{ExpireAfter: true}, true, true, false, false},
		{"DropReply and ExpireAfter", zkserver.Fault{DropReply: true, ExpireAfter: true}, true, false, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			simulate(t, func(t *testing.T, s *zkserver.Server) {
				c := connect(t, s, nil)
				s.SetFault(onCreate(test.fault))
				code, err := c.do("create", "/x")
				if answered := err == nil && code == 0; answered != test.answer {
					t.Errorf("answer: %d, %v", code, err)
				}
				if !test.answer && !test.connectionLives {
					wantClosed(t, err)
				}
				if exists(s, "/x") != test.executed {
					t.Errorf("executed: %v", !test.executed)
				}
				if _, err := c.do("exists", "/"); (err == nil) != test.connectionLives {
					t.Errorf("connection afterwards: %v", err)
				}
				back := connect(t, s, c)
				if lives := back.session == c.session; lives != test.sessionLives {
					t.Errorf("session resumed: %v", lives)
				}
			})
		})
	}
}

func TestFaultSeesRequestsButNotPings(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		var last atomic.Pointer[zkserver.Request]
		s.SetFault(func(r zkserver.Request) zkserver.Fault {
			last.Store(&r)
			return zkserver.Fault{}
		})
		for _, op := range []string{"ping", "create", "ping", "setData"} {
			c.ok(t, op, "/x")
		}
		want := zkserver.Request{N: 2, SessionID: c.session, Op: zkserver.OpSetData, Path: "/x"}
		if got := *last.Load(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.SetFault(nil)
		c.ok(t, "delete", "/x")
		if last.Load().N != 2 {
			t.Error("called after it was removed")
		}
	})
}

func TestSilentSessionExpiresAtItsTimeoutAndNotBefore(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a := connect(t, s, nil)
		a.ok(t, "create", "/e", "flags=e")
		timeout := time.Duration(a.timeout) * time.Millisecond
		if timeout != 10*time.Second {
			t.Fatalf("negotiated %v", timeout)
		}
		time.Sleep(timeout - time.Millisecond) // virtual
		a.ok(t, "ping")
		time.Sleep(timeout - time.Millisecond)
		if !exists(s, "/e") {
			t.Error("expired before its timeout")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if exists(s, "/e") || len(s.Sessions()) != 0 {
			t.Error("did not expire at its timeout")
		}
		if back := connect(t, s, a); back.session != 0 {
			t.Error("an expired session was resumed")
		}
	})
}

func TestFrozenServerAnswersNothingUntilTheThaw(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a := connect(t, s, nil)
		s.Freeze(true)
		answered := make(chan error)
		go func() {
			_, err := a.do("ping")
			answered <- err
		}()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		select {
		case <-answered:
			t.Fatal("answered while frozen")
		default:
		}
		s.Freeze(false)
		must.Report(t, <-answered)

		s.Freeze(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.Sessions()) != 1 {
			t.Error("expired while frozen")
		}
		s.Freeze(false)
		synctest.Wait()
		if len(s.Sessions()) != 0 {
			t.Error("not expired by the thaw")
		}
	})
}

func TestRefusedConnectionsAreClosedAtOnce(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a := connect(t, s, nil)
		s.RefuseConnections(true)
		_, err := tryConnect(s, a)
		wantClosed(t, err)
		a.ok(t, "exists", "/")
		s.RefuseConnections(false)
		if back := connect(t, s, a); back.session != a.session {
			t.Error("not resumed")
		}
	})
}

func TestCloseAllConnectionsLeavesTheSessions(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		s.CloseAllConnections()
		for _, c := range []*rawClient{a, b} {
			_, err := c.do("exists", "/")
			wantClosed(t, err)
			if back := connect(t, s, c); back.session != c.session {
				t.Error("not resumed")
			}
		}
		if s.CloseConnection(12345) || s.ExpireSession(12345) {
			t.Error("an unknown session was found")
		}
	})
}

func TestHoldKeepsTheOrderOfTheSessionAndDelaysNoOther(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		hold := make(chan struct{})
		s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
		for _, r := range []struct{ op, path string }{{"create", "/x"}, {"setData", "/x"}, {"ping", ""}} {
			must.Do(t, a.send(opCodes[r.op], args{path: r.path}.body(opCodes[r.op])))
		}
		synctest.Wait()
		if code, err := b.do("exists", "/x"); code != -101 || err != nil {
			t.Errorf("before the release: %s, %v", codeName(code), err)
		}
		close(hold)
		for range 3 {
			code, err := a.reply()
			wantOK(t, code, err)
		}
	})
}

func TestHeldRequestOutlivesItsConnection(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, hold := creating(t, s)
		if !s.CloseConnection(a.session) {
			t.Fatal("no connection to close")
		}
		back := connect(t, s, a)
		close(hold)
		back.ok(t, "exists", "/x")
	})
}

func TestHeldRequestOfAnExpiredSessionIsNotExecuted(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, hold := creating(t, s)
		if !s.ExpireSession(a.session) {
			t.Fatal("no session to expire")
		}
		close(hold)
		synctest.Wait()
		if exists(s, "/x") {
			t.Error("executed for a dead session")
		}
	})
}

func TestHoldReplyCommitsAtOnce(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		hold := make(chan struct{})
		s.SetFault(onCreate(zkserver.Fault{HoldReply: hold}))
		must.Do(t, a.send(1, args{path: "/x"}.body(1)))
		synctest.Wait()
		b.ok(t, "exists", "/x")

		answered := make(chan error)
		go func() {
			_, err := a.reply()
			answered <- err
		}()
		synctest.Wait()
		select {
		case <-answered:
			t.Fatal("the reply did not wait")
		default:
		}
		close(hold)
		must.Report(t, <-answered)
	})
}

// creating returns a client whose creation of /x is held until hold is closed.
func creating(t *testing.T, s *zkserver.Server) (a *rawClient, hold chan struct{}) {
	t.Helper()
	a, hold = connect(t, s, nil), make(chan struct{})
	s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
	must.Do(t, a.send(1, args{path: "/x"}.body(1)))
	synctest.Wait()
	return a, hold
}

// A client of a lagging follower watches the old state that it reads. When the follower
// catches up, the client is notified of the change that had already happened.
func TestAWatchOfAFollowerThatLagsFiresWhenItCatchesUp(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		writer := connect(t, s, nil)
		defer writer.nc.Close()
		writer.ok(t, "create", "/a")
		follower := s.Follower()
		client := connect(t, follower, nil)
		defer client.nc.Close()
		follower.CutOff()
		follower.Lag()
		writer.ok(t, "delete", "/a")
		client.ok(t, "getData", "/a", "watch") // the deletion is not visible here
		if n := s.Watches(); n != 1 {
			t.Fatalf("%d watches", n)
		}
		follower.Heal()
		frame := must.Get(client.frame())(t)
		const deleted = 2
		r := reader{frame[16:]} // after the header
		kind, _, path := r.i32(), r.i32(), r.str()
		if kind != deleted || path != "/a" {
			t.Errorf("got event %d of %q", kind, path)
		}
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches", n)
		}
	})
}

func TestAFollowerThatIsCutOffTakesNoConnection(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		follower := s.Follower()
		follower.CutOff()
		if _, err := tryConnect(follower, nil); err == nil {
			t.Error("a session was opened")
		}
	})
}

// A follower that is late takes a connection and shows it an old state, unless the client has seen
// a later one. Writes and syncs wait.
func TestAFollowerThatIsLateTakesConnections(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		writer := connect(t, s, nil)
		defer writer.nc.Close()
		follower := s.Follower()
		follower.Late()
		writer.ok(t, "create", "/a")
		client := connect(t, follower, nil)
		defer client.nc.Close()
		if code, err := client.do("exists", "/a"); code != -101 || err != nil {
			t.Errorf("the late follower answers %d, %v", code, err)
		}
		near, far := net.Pipe()
		go follower.ServeConn(far)
		if _, err := handshake("c", near, connectOptions{timeout: 10000, lastZxid: 3}); err == nil {
			t.Error("it has taken a client that has seen a later transaction")
		}
		follower.Heal()
		client.ok(t, "exists", "/a")
	})
}

// A follower is cut off while a write is held back. The leader executes the write when the
// follower is reconnected, unless the session has expired.
func TestAHeldWriteWaitsForTheFollowersReturn(t *testing.T) {
	for _, expires := range []bool{false, true} {
		simulate(t, func(t *testing.T, s *zkserver.Server) {
			follower, hold := s.Follower(), make(chan struct{})
			client := connect(t, follower, nil)
			defer client.nc.Close()
			s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
			must.Do(t, client.send(1, args{path: "/x"}.body(1)))
			synctest.Wait()
			follower.CutOff()
			if expires {
				s.ExpireSession(client.session)
			}
			close(hold)
			synctest.Wait()
			if exists(s, "/x") {
				t.Errorf("expires %v: the leader executed a write of a follower that is cut off", expires)
			}
			follower.Heal()
			synctest.Wait()
			if exists(s, "/x") == expires {
				t.Errorf("expires %v: after the follower was reconnected, /x exists: %v", expires, exists(s, "/x"))
			}
		})
	}
}

// A write is held back at a follower while its session moves to the leader. The leader refuses it,
// even if the session has come back to the follower.
func TestAHeldWriteOfASessionThatMovedIsRefused(t *testing.T) {
	for _, back := range []bool{false, true} {
		simulate(t, func(t *testing.T, s *zkserver.Server) {
			follower, hold := s.Follower(), make(chan struct{})
			client := connect(t, follower, nil)
			s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
			must.Do(t, client.send(1, args{path: "/x"}.body(1)))
			synctest.Wait()
			client.nc.Close()
			moved := connect(t, s, client)
			if back {
				moved.nc.Close()
				moved = connect(t, follower, client)
			}
			defer moved.nc.Close()
			close(hold)
			synctest.Wait()
			if exists(s, "/x") {
				t.Errorf("back %v: the leader executed it", back)
			}
		})
	}
}

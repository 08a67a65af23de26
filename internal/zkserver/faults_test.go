package zkserver_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// simulate runs a test on virtual time, against a server over pipes.
func simulate(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{})
		defer s.Close()
		test(t, s)
	})
}

// connect opens or resumes a session over a pipe.
func connect(t *testing.T, s *zkserver.Server, from *rawClient) *rawClient {
	t.Helper()
	c, err := tryConnect(s, from)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryConnect(s *zkserver.Server, from *rawClient) (*rawClient, error) {
	near, far := net.Pipe()
	go s.ServeConn(far)
	o := connectOptions{timeout: 10000}
	if from != nil {
		o.session, o.password = from.session, from.password
	}
	return handshake("c", near, o)
}

// do sends a request and returns the code of its reply, and whether there was
// one. Events on the way are skipped.
func (c *rawClient) do(op string, words ...string) (code int32, err error) {
	p := player{}
	if err := c.send(opCodes[op], p.parse(words).body(opCodes[op])); err != nil {
		return 0, errClosed
	}
	return c.reply()
}

func (c *rawClient) reply() (code int32, err error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return 0, err
		}
		r := reader{frame}
		xid, _, code := r.i32(), r.i64(), r.i32()
		if xid != -1 {
			c.pending = c.pending[1:]
			return code, nil
		}
	}
}

func wantOK(t *testing.T, code int32, err error) {
	t.Helper()
	if code != 0 || err != nil {
		t.Fatalf("reply: %s, %v", codeName(code), err)
	}
}

func wantClosed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, errClosed) {
		t.Fatalf("connection should be closed, got %v", err)
	}
}

func exists(s *zkserver.Server, path string) bool {
	for _, n := range s.Tree() {
		if n.Path == path {
			return true
		}
	}
	return false
}

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
				if !test.answer {
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

func TestHoldKeepsTheOrderOfTheSessionAndLetsOthersGo(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a, b := connect(t, s, nil), connect(t, s, nil)
		hold := make(chan struct{})
		s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
		for _, r := range []struct{ op, path string }{{"create", "/x"}, {"setData", "/x"}, {"ping", ""}} {
			if err := a.send(opCodes[r.op], args{path: r.path}.body(opCodes[r.op])); err != nil {
				t.Fatal(err)
			}
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
		a := connect(t, s, nil)
		hold := make(chan struct{})
		s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
		if err := a.send(1, args{path: "/x"}.body(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !s.CloseConnection(a.session) {
			t.Fatal("no connection to close")
		}
		back := connect(t, s, a)
		close(hold)
		code, err := back.do("exists", "/x")
		wantOK(t, code, err)
	})
}

func TestHeldRequestOfAnExpiredSessionIsNotExecuted(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a := connect(t, s, nil)
		hold := make(chan struct{})
		s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
		if err := a.send(1, args{path: "/x"}.body(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
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
		if err := a.send(1, args{path: "/x"}.body(1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		code, err := b.do("exists", "/x")
		wantOK(t, code, err)

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
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
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
			code, err := c.do(op, "/x")
			wantOK(t, code, err)
		}
		want := zkserver.Request{N: 2, SessionID: c.session, Op: zkserver.OpSetData, Path: "/x", Xid: 4}
		if got := *last.Load(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.SetFault(nil)
		code, err := c.do("delete", "/x")
		wantOK(t, code, err)
		if last.Load().N != 2 {
			t.Error("asked after it was removed")
		}
	})
}

func TestSilentSessionExpiresAtItsTimeoutAndNotBefore(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		a := connect(t, s, nil)
		code, err := a.do("create", "/e", "flags=e")
		wantOK(t, code, err)
		timeout := time.Duration(a.timeout) * time.Millisecond
		if timeout != 10*time.Second {
			t.Fatalf("negotiated %v", timeout)
		}
		time.Sleep(timeout - time.Millisecond) // virtual
		code, err = a.do("ping")
		wantOK(t, code, err)
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
		if err := <-answered; err != nil {
			t.Error(err)
		}

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
		code, err := a.do("exists", "/")
		wantOK(t, code, err)
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

func TestSequenceWraps(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		code, err := c.do("create", "/p")
		wantOK(t, code, err)
		if err := s.SetSequence("/p", 2147483647); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"/p/n-2147483647", "/p/n--2147483648", "/p/n--2147483647"} {
			code, err := c.do("create", "/p/n-", "flags=s")
			wantOK(t, code, err)
			if !exists(s, want) {
				t.Errorf("no %s", want)
			}
		}
		if err := s.SetSequence("/p", -5); err != nil {
			t.Fatal(err)
		}
		code, err = c.do("create", "/p/n-", "flags=s")
		wantOK(t, code, err)
		if !exists(s, "/p/n--000000005") {
			t.Error("negative numbers are padded as in Java")
		}
		if s.SetSequence("/nope", 1) == nil {
			t.Error("no error for a missing node")
		}
	})
}

func TestReapingOnDemand(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		c := connect(t, s, nil)
		for _, r := range [][]string{
			{"createContainer", "/unused", "flags=c"}, {"createContainer", "/used", "flags=c"},
			{"create", "/used/x"}, {"delete", "/used/x"},
			{"createTTL", "/ttl", "flags=t", "ttl=50"},
		} {
			code, err := c.do(r[0], r[1:]...)
			wantOK(t, code, err)
		}
		time.Sleep(51 * time.Millisecond)
		if !exists(s, "/ttl") || !exists(s, "/used") {
			t.Fatal("reaped before the interval")
		}
		s.RunContainerCheck()
		if exists(s, "/ttl") || exists(s, "/used") || !exists(s, "/unused") {
			t.Errorf("after the check: %v", s.Tree())
		}
	})
}

func TestTTLCanBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zkserver.New(zkserver.Config{DisableTTL: true})
		defer s.Close()
		c := connect(t, s, nil)
		if code, err := c.do("createTTL", "/ttl", "flags=t", "ttl=50"); code != -6 || err != nil {
			t.Errorf("got %s, %v", codeName(code), err)
		}
	})
}

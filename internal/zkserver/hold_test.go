package zkserver_test

import (
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

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

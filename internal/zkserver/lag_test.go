package zkserver_test

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

// A client of a follower that lags watches what it reads there. It is told of what
// had already changed when the follower learns of it.
func TestAWatchOfAFollowerThatLagsFiresWhenItCatchesUp(t *testing.T) {
	simulate(t, func(t *testing.T, s *zkserver.Server) {
		writer := connect(t, s, nil)
		defer writer.nc.Close()
		code, err := writer.do("create", "/a")
		wantOK(t, code, err)
		follower := s.Follower()
		near, far := net.Pipe()
		go follower.ServeConn(far)
		client, err := handshake("reader", near, connectOptions{timeout: 10000})
		if err != nil {
			t.Fatal(err)
		}
		defer client.nc.Close()
		follower.CutOff()
		follower.Lag()
		code, err = writer.do("delete", "/a")
		wantOK(t, code, err)
		code, err = client.do("getData", "/a", "watch")
		wantOK(t, code, err) // it knows nothing of the deletion
		if n := s.Watches(); n != 1 {
			t.Fatalf("%d watches", n)
		}
		follower.Heal()
		frame, err := client.frame()
		if err != nil {
			t.Fatal(err)
		}
		const deleted = 2
		r := reader{frame[16:]} // behind the header
		kind, _, path := r.i32(), r.i32(), r.str()
		if kind != deleted || path != "/a" {
			t.Errorf("told of event %d of %q", kind, path)
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
		near, far := net.Pipe()
		go follower.ServeConn(far)
		if _, err := handshake("client", near, connectOptions{timeout: 10000}); err == nil {
			t.Error("a session was opened")
		}
	})
}

// A follower is cut off while a write is held back. The leader has it when the follower is
// back, and not if it has ended the session.
func TestAHeldWriteWaitsForTheFollowersReturn(t *testing.T) {
	for _, expires := range []bool{false, true} {
		simulate(t, func(t *testing.T, s *zkserver.Server) {
			follower, hold := s.Follower(), make(chan struct{})
			near, far := net.Pipe()
			go follower.ServeConn(far)
			client, err := handshake("writer", near, connectOptions{timeout: 10000})
			if err != nil {
				t.Fatal(err)
			}
			defer client.nc.Close()
			s.SetFault(onCreate(zkserver.Fault{Hold: hold}))
			if err := client.send(1, args{path: "/x"}.body(1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			follower.CutOff()
			if expires {
				s.ExpireSession(client.session)
			}
			close(hold)
			synctest.Wait()
			if exists(s, "/x") {
				t.Errorf("expires %v: the leader has it, from a follower that is cut off", expires)
			}
			follower.Heal()
			synctest.Wait()
			if exists(s, "/x") == expires {
				t.Errorf("expires %v: when the follower is back there is a znode: %v", expires, exists(s, "/x"))
			}
		})
	}
}

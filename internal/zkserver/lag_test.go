package zkserver_test

import (
	"testing"
	"testing/synctest"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
)

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

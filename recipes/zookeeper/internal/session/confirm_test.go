package session_test

import (
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// However often a session begins to hold something, one goroutine asks the leader, ten
// times in a timeout. It ends when nothing is held.
func TestOneGoroutineAsksTheLeader(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		asking := func() int {
			synctest.Wait()
			var all strings.Builder
			if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
				t.Fatal(err)
			}
			return strings.Count(all.String(), "session.(*Session).confirm(")
		}
		for range 50 {
			beginHold(t, s)
			s.EndHold()
			beginHold(t, s)
		}
		if n := asking(); n != 1 {
			t.Errorf("%d goroutines ask the leader", n)
		}
		before := srv.Counters().Requests[zkserver.OpSync]
		time.Sleep(2 * s.Timeout())
		if n := srv.Counters().Requests[zkserver.OpSync] - before; n < 19 || n > 21 {
			t.Errorf("in two timeouts it was asked %d times", n)
		}
		for range 50 {
			s.EndHold()
		}
		time.Sleep(s.Timeout())
		if n := asking(); n != 0 {
			t.Errorf("%d goroutines ask the leader, and nothing is held", n)
		}
		beginHold(t, s)
		if n := asking(); n != 1 {
			t.Errorf("something is held again, and %d goroutines ask the leader", n)
		}
		s.EndHold()
	})
}

func beginHold(t *testing.T, s *session.Session) {
	t.Helper()
	if err := s.BeginHold(t.Context()); err != nil {
		t.Fatal(err)
	}
}

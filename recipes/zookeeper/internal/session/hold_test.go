package session_test

import (
	"context"
	"errors"
	"net"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// A server that answers by itself proves nothing about the leader. The deadline of a second hold
// does not count from such an answer either.
func TestASecondHoldProvesNothing(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		beginHold(t, s)
		defer s.EndHold()
		time.Sleep(2*s.Timeout() + s.Timeout()/20) // between two syncs
		srv.SetFault(func(r zkserver.Request) zkserver.Fault { return zkserver.Fault{Throttle: r.Op == zkserver.OpSync} })
		known := s.KnownContact()
		time.Sleep(s.Timeout() / 4)
		if s.LastContact().Sub(known) < s.Timeout()/4 {
			t.Fatal("no contact is much later than the proved one: the case was not met")
		}
		beginHold(t, s)
		defer s.EndHold()
		if now := s.KnownContact(); !now.Equal(known) {
			t.Errorf("the last proved contact is now %v later", now.Sub(known))
		}
	})
}

// The last contact is recent, and the last one that the leader is proved to have received is
// older. A hold counts from the older one at once.
func TestAHoldCountsFromAnEarlierContactAtOnce(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ctx := t.Context()
		for range 20 { // so that a recent contact has set the timer
			must.Get(s.Stat(ctx, "/"))(t)
			time.Sleep(s.Timeout() / 20)
		}
		beginHold(t, s)
		defer s.EndHold()
		srv.Freeze(true)
		defer srv.Freeze(false)
		known := s.KnownContact()
		<-s.Done()
		if took := time.Since(known); !errors.Is(s.Err(), recipes.ErrDeadline) || took > s.Timeout() {
			t.Errorf("lost %v after the last proved contact: %v", took, s.Err())
		}
	})
}

// The identity is sent once on each connection, whichever request needs it first.
func TestTheIdentityIsSentOnceOnAConnection(t *testing.T) {
	srv, ctx := embedded(t), zktest.Bounded(t)
	s := open(t, to(srv))
	for n := range int64(2) {
		must.Get(s.GetOwn(ctx, "/"))(t)
		for range 3 {
			place := bare(t, s, "/line")
			must.Report(t, <-s.Handoff(ctx, place))
		}
		if given := srv.Counters().Requests[zkserver.OpAuth]; given != n+1 {
			t.Errorf("on connection %d it was given %d times so far", n, given)
		}
		cutAndWait(t, srv, s)
	}
	if n := s.Counters().Fallbacks; n != 0 {
		t.Errorf("%d znodes could not be released by handoff", n)
	}
}

// LetGo returns when all background work of the session has ended.
func TestLettingGoWaitsForWhatRuns(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, _ *zkserver.Server, s *session.Session) {
		ended := false
		s.Background(func(life context.Context) { <-life.Done(); time.Sleep(time.Second); ended = true })
		if _, err := s.LetGo(t.Context()); err != nil || !ended {
			t.Errorf("%v; the work has ended: %v", err, ended)
		}
		time.Sleep(2 * time.Second) // go-zookeeper's Close waits for one second
	})
}

// LetGo also waits for a dial that does not return in time.
func TestLettingGoWaitsForADial(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		dials, ended := 0, false
		s, err := session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, MaxPacket: 64 << 10},
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				if dials++; dials > 1 {
					<-ctx.Done()
					time.Sleep(3 * time.Second)
					ended = true
					return nil, ctx.Err()
				}
				return pipe(srv), nil
			})
		must.Do(t, err)
		srv.CloseConnection(s.ID())
		time.Sleep(2 * time.Second) // go-zookeeper waits for one second before it dials again
		if _, err := s.LetGo(t.Context()); err != nil || dials != 2 || !ended {
			t.Errorf("%v; the last of %d dials has ended: %v", err, dials, ended)
		}
	})
}

// A server that answers no sync may be cut off from the leader. The session moves to another
// one long before go-zookeeper would, even while it sends writes, which are not answered either.
func TestAServerThatAnswersNoSyncIsLeft(t *testing.T) {
	for _, writes := range []int{0, 10} {
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
			proceed := make(chan struct{})
			defer close(proceed)
			srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
				if r.Op == zkserver.OpSync || r.Op == zkserver.OpSetData {
					f.Hold = proceed
				}
				return f
			})
			beginHold(t, s)
			defer s.EndHold()
			end := time.Now().Add(s.Timeout() / 2)
			for range writes {
				go s.SetOnce(t.Context(), "/", nil, -1)
				time.Sleep(s.Timeout() / 20)
			}
			time.Sleep(time.Until(end))
			if n := s.Counters().Reconnects; n == 0 {
				t.Errorf("with %d writes, the session did not leave the server", writes)
			}
		})
	}
}

// A server may refuse a write without asking the leader. So refused writes confirm no hold.
func TestRefusedWritesConfirmNoHold(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, _ *zkserver.Server, s *session.Session) {
		beginHold(t, s)
		defer s.EndHold()
		for range 40 {
			if _, err := s.SetOnce(t.Context(), "/", nil, 9); !errors.Is(err, recipes.ErrBadVersion) {
				t.Fatal(err)
			}
			time.Sleep(s.Timeout() / 20)
		}
	})
}

// However often a session begins a hold, one goroutine sends leading requests, ten per timeout.
// It ends when the session holds nothing.
func TestOneGoroutineSendsLeadingRequests(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		asking := func() int {
			synctest.Wait()
			var all strings.Builder
			must.Do(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
			return strings.Count(all.String(), "session.(*Session).confirm(")
		}
		for range 50 {
			beginHold(t, s)
			s.EndHold()
			beginHold(t, s)
		}
		if n := asking(); n != 1 {
			t.Errorf("%d goroutines send leading requests", n)
		}
		before := srv.Counters().Requests[zkserver.OpSync]
		time.Sleep(2 * s.Timeout())
		if n := srv.Counters().Requests[zkserver.OpSync] - before; n < 19 || n > 21 {
			t.Errorf("in two timeouts %d leading requests were sent", n)
		}
		for range 50 {
			s.EndHold()
		}
		time.Sleep(s.Timeout())
		if n := asking(); n != 0 {
			t.Errorf("nothing is held, and %d goroutines send leading requests", n)
		}
		beginHold(t, s)
		if n := asking(); n != 1 {
			t.Errorf("something is held again, and %d goroutines send leading requests", n)
		}
		s.EndHold()
	})
}

// If a session writes more than ten times per timeout, its writes serve as leading requests. The
// requests of an inspection are still sent, with a sync.
func TestWritesConfirmAHold(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		beginHold(t, s)
		defer s.EndHold()
		write := func(when string, want int64) {
			before := srv.Counters().Requests[zkserver.OpSync]
			for range 40 {
				must.Get(s.SetOnce(t.Context(), "/", nil, -1))(t)
				time.Sleep(s.Timeout() / 20)
			}
			if n := srv.Counters().Requests[zkserver.OpSync] - before; n != want {
				t.Errorf("%s it sent %d syncs beside; want %d", when, n, want)
			}
		}
		write("before", 0)
		inspected := 0
		i := s.Inspect("/", func(i *session.Inspection, _ session.Stat) { inspected++; i.Again() })
		time.Sleep(s.Timeout()/4 + s.Timeout()/40) // from here on, no write coincides with a sync
		synctest.Wait()
		inspected = 0
		write("while it inspects", 20)
		i.Stop()
		synctest.Wait()
		if inspected != 20 {
			t.Errorf("%d inspections", inspected)
		}
		time.Sleep(s.Timeout() / 10)
		write("after that", 0)
		must.Report(t, s.Err())
	})
}

func beginHold(t *testing.T, s *session.Session) {
	t.Helper()
	must.Do(t, s.BeginHold(t.Context()))
}

package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// The number of syncs before a grant depends on the earlier requests of the session: see "The rule
// for grants" in package lease.
func TestAHoldSyncsUntilItIsProved(t *testing.T) {
	const soon = time.Second
	write := func(t *testing.T, s *session.Session) {
		must.Get(s.CreateProtected(t.Context(), "/", "x-", nil))(t)
	}
	idle := func(t *testing.T, s *session.Session) { time.Sleep(3*s.Timeout() + soon) }
	for _, tt := range []struct {
		name   string
		before []func(*testing.T, *session.Session)
		syncs  int64
	}{
		{"a new session", nil, 0},
		{"a session that is not quite too old", []func(*testing.T, *session.Session){
			func(_ *testing.T, s *session.Session) { time.Sleep(s.Timeout() * 74 / 100) },
		}, 0},
		{"one that is a little too old", []func(*testing.T, *session.Session){
			func(_ *testing.T, s *session.Session) { time.Sleep(s.Timeout() * 76 / 100) },
		}, 2},
		{"an idle session", []func(*testing.T, *session.Session){idle}, 2},
		{"an idle session that writes", []func(*testing.T, *session.Session){idle, write}, 1},
		{"an idle session that writes, and has asked ahead", []func(*testing.T, *session.Session){idle, write,
			func(_ *testing.T, s *session.Session) { s.PrepareProof(); time.Sleep(soon) },
		}, 0},
		{"one that holds something", []func(*testing.T, *session.Session){beginHold, idle}, 0},
	} {
		test := func(t *testing.T) (syncs, asked int64) {
			onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
				for _, before := range tt.before {
					before(t, s)
				}
				syncs, asked = -srv.Counters().Requests[zkserver.OpSync], -s.Counters().Asked
				beginHold(t, s)
				syncs, asked = syncs+srv.Counters().Requests[zkserver.OpSync], asked+s.Counters().Asked
				if age := time.Since(s.KnownContact()); age > s.Timeout()*3/4 {
					t.Errorf("the leader is proved to count from %v ago", age)
				}
			})
			return syncs, asked
		}
		t.Run(tt.name, func(t *testing.T) {
			syncs, asked := test(t)
			// A run may count one sync too many: the first of the confirmations that follow. So the
			// least of several runs is compared.
			for range 3 {
				if again, _ := test(t); again < syncs {
					syncs = again
				}
			}
			if syncs != tt.syncs || (asked > 0) != (tt.syncs > 0) {
				t.Errorf("%d syncs, counted as %d; want %d syncs", syncs, asked, tt.syncs)
			}
		})
	}
}

// PrepareProof sends nothing if the proof is recent.
func TestAContenderPreparesAProofOnlyIfItIsOld(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		for _, tt := range []struct {
			age  time.Duration // in hundredths of the timeout
			want int64
		}{{49, 0}, {51, 1}} {
			sent := srv.Counters().Requests[zkserver.OpSync]
			time.Sleep(s.Timeout()*tt.age/100 - time.Since(s.KnownContact()))
			s.PrepareProof()
			time.Sleep(time.Millisecond)
			if n := srv.Counters().Requests[zkserver.OpSync] - sent; n != tt.want {
				t.Errorf("%d %% of the timeout after the proof: %d syncs; want %d", tt.age, n, tt.want)
			}
		}
	})
}

// While the leader does not answer, no hold begins. The caller may give up.
func TestAHoldThatIsNotProvedIsNotBegun(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		time.Sleep(3 * s.Timeout())
		answers := make(chan struct{})
		srv.SetFault(func(r zkserver.Request) (f zkserver.Fault) {
			if r.Op == zkserver.OpSync {
				f.Hold = answers
			}
			return f
		})
		ctx, cancel := context.WithTimeout(t.Context(), s.Timeout()/10) // virtual
		defer cancel()
		if err := s.BeginHold(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("began to hold with %v", err)
		}
		close(answers)
		srv.SetFault(nil)
		time.Sleep(3 * s.Timeout())
		if err := s.Err(); err != nil {
			t.Errorf("the session counts as one that holds something: %v", err)
		}
		if n := s.Counters().ByKind["sync"]; n > 2 {
			t.Errorf("%d syncs in a session that holds nothing", n)
		}
	})
}

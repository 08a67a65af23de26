package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// onKeeper runs test in a bubble for each version of Keeper, with a session over a pipe.
func onKeeper(t *testing.T, test func(t *testing.T, srv *zkserver.Server, s *session.Session)) {
	for _, like := range zkserver.Keepers() {
		t.Run(like.String(), func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{Like: like})
				defer srv.Close()
				s := piped(t, srv, recipes.SessionConfig{MaxPacket: 64 << 10})
				defer closeNow(s)
				test(t, srv, s)
			})
		})
	}
}

// piped opens a session over pipes.
func piped(t *testing.T, srv *zkserver.Server, cfg recipes.SessionConfig) *session.Session {
	t.Helper()
	cfg.Servers = []string{"server"}
	return must.Get(session.Open(t.Context(), cfg, dialPipe(srv)))(t)
}

// known checks that the server got no request that a version of Keeper may not know.
func known(t *testing.T, srv *zkserver.Server) {
	t.Helper()
	for _, op := range []zkserver.Op{
		zkserver.OpCreate2, zkserver.OpCreateContainer, zkserver.OpCreateTTL, zkserver.OpSetWatches, zkserver.OpSetWatches2, zkserver.OpAddWatch,
		zkserver.OpCheckWatches, zkserver.OpRemoveWatches, zkserver.OpGetEphemerals, zkserver.OpMultiRead,
	} {
		if n := srv.Counters().Requests[op]; n > 0 {
			t.Errorf("%d requests %v", n, op)
		}
	}
}

// Opening a session names the kind of the server, and costs no request for that. Only Keeper is worth
// a warning.
func TestTheKindOfTheServerIsKnown(t *testing.T) {
	for like, want := range map[zkserver.Release]recipes.ServerKind{
		zkserver.Release34: recipes.ServerZooKeeper, zkserver.Release38: recipes.ServerZooKeeper, zkserver.Release39: recipes.ServerZooKeeper,
		zkserver.Keeper22: recipes.ServerKeeper, zkserver.Keeper26: recipes.ServerKeeper,
	} {
		zktest.Bubble(t, func(t *testing.T) {
			srv := zkserver.New(zkserver.Config{Like: like})
			defer srv.Close()
			var log bytes.Buffer
			s := piped(t, srv, recipes.SessionConfig{ZooKeeperOnly: want == recipes.ServerZooKeeper, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})})
			synctest.Wait()
			if got := s.Counters().Server; got != want {
				t.Errorf("%v: recognized as %q", like, got)
			}
			if n := len(srv.Counters().Requests); n > 0 {
				t.Errorf("%v: it cost requests: %v", like, srv.Counters().Requests)
			}
			closeNow(s)
			if warned := strings.Contains(log.String(), "ClickHouse Keeper"); warned != (want == recipes.ServerKeeper) {
				t.Errorf("%v: the log is %q", like, log.String())
			}
		})
	}
}

// ZooKeeperOnly refuses Keeper at Open, and leaves no session there.
func TestZooKeeperOnlyRefusesKeeper(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		zktest.Bubble(t, func(t *testing.T) {
			srv := zkserver.New(zkserver.Config{Like: like})
			defer srv.Close()
			_, err := session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}, ZooKeeperOnly: true}, dialPipe(srv))
			if !errors.Is(err, recipes.ErrUnsupported) || !strings.Contains(err.Error(), "zookeeper_only") {
				t.Errorf("%v: %v", like, err)
			}
			synctest.Wait()
			if left := srv.Sessions(); len(left) > 0 {
				t.Errorf("%v: sessions %v are left", like, left)
			}
		})
	}
}

// Keeper knows no SASL, so nothing of it is sent.
func TestKeeperGetsNoSASL(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{Like: zkserver.Keeper22})
		defer srv.Close()
		cfg := recipes.SessionConfig{Servers: []string{"server:1"}, SASL: &recipes.SASL{Mechanism: "DIGEST-MD5", User: "u", Password: "p"}}
		_, err := session.Open(t.Context(), cfg, dialPipe(srv))
		if !errors.Is(err, recipes.ErrAuthFailed) || !strings.Contains(err.Error(), "ClickHouse Keeper has no SASL") {
			t.Error(err)
		}
		synctest.Wait()
		if got := srv.Counters().Requests; len(got) != 1 || got[zkserver.OpCloseSession] != 1 {
			t.Errorf("it got %v", got)
		}
	})
}

// A connection that ends takes the session with it, as soon as a server answers: long before the
// deadline. The reason is its own. Keeper still has the znodes then, and no third session.
func TestKeepersSessionIsLostWithItsConnection(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		znode := must.Get(s.CreateProtected(t.Context(), "/l", "lock-", nil))(t)
		beginHold(t, s)
		defer s.EndHold()
		cut := time.Now()
		srv.CloseConnection(s.ID())
		err := awaitLost(t, s)
		if !errors.Is(err, recipes.ErrNotContinued) || errors.Is(err, recipes.ErrExpired) || errors.Is(err, recipes.ErrDeadline) {
			t.Errorf("lost with %v", err)
		}
		if took := time.Since(cut); took > time.Second {
			t.Errorf("after %v", took)
		}
		if err := s.BeginHold(t.Context()); !errors.Is(err, recipes.ErrNotContinued) {
			t.Errorf("a grant: %v", err)
		}
		if err := s.Close(t.Context()); !errors.Is(err, recipes.ErrUnknownOutcome) {
			t.Errorf("closing: %v; the znode is still there", err)
		}
		synctest.Wait()
		if left := srv.Sessions(); !zktest.Exists(srv, znode) || len(left) != 1 || left[0] != s.ID() {
			t.Errorf("sessions %v, the znode exists: %t", left, zktest.Exists(srv, znode))
		}
		time.Sleep(s.Timeout() + 2*time.Second)
		if zktest.Exists(srv, znode) {
			t.Error("the znode is left after the session's timeout")
		}
	})
}

// Close is confirmed, although Keeper does not answer it.
func TestClosingIsConfirmedOnKeeper(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		znode := must.Get(s.CreateProtected(t.Context(), "/l", "lock-", nil))(t)
		closed := time.Now()
		must.Do(t, s.Close(t.Context()))
		if took := time.Since(closed); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if zktest.Exists(srv, znode) || len(srv.Sessions()) > 0 {
			t.Errorf("left: %v", srv.Sessions())
		}
	})
}

// Nothing that the session does sends a request that Keeper may not know: it would end the session.
func TestNothingUnknownIsSentToKeeper(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ctx := t.Context()
		// Containers, and the search for a version.
		must.Do(t, s.Ensure(ctx, "/a/b"))
		must.Do(t, s.EnsureQueuePath(ctx, "/q"))
		// A bare znode.
		if _, _, err := s.CreateBare(ctx, "/q", "lock-", nil, true, s.EnsureQueuePath); !errors.Is(err, session.ErrNoBareZnode) {
			t.Errorf("a bare znode: %v", err)
		}
		// The removal of a watch.
		waiting, stop := context.WithCancel(ctx)
		_, _, err := s.ExistsW(waiting, "/never")
		must.Do(t, err)
		stop()
		synctest.Wait()
		// A member list.
		if _, err := s.Notes(ctx, "/a"); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("the session's znodes were listed: %v", err)
		}
		known(t, srv)
		must.Do(t, s.Err())
	})
}

// The paths of a session's znodes are not limited: Keeper has neither the transaction that is too large
// nor the request that counts them.
func TestKeeperNeedsNoCountOfEphemerals(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		must.Do(t, s.Ensure(t.Context(), "/a"))
		for range 70 {
			must.Get(s.CreateProtected(t.Context(), "/a", strings.Repeat("n", 1000), nil))(t)
		}
		known(t, srv)
		must.Do(t, s.Err())
	})
}

// A path with a hold is inspected by a listing that sets the watch, once for each change.
func TestAPathIsInspectedOnKeeper(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		must.Do(t, s.Create(t.Context(), "/x", nil))
		beginHold(t, s)
		defer s.EndHold()
		children := []int32{}
		for _, path := range []string{"/x", "/missing"} {
			i := s.Inspect(path, func(_ *session.Inspection, stat session.Stat) {
				if stat != (session.Stat{}) {
					children = append(children, stat.NumChildren)
				}
			})
			defer i.Stop()
		}
		want := []int32{0}
		for round := range 3 {
			beat(s)
			beat(s)
			synctest.Wait()
			if fmt.Sprint(children) != fmt.Sprint(want) {
				t.Fatalf("in round %d, the records have %v children; want %v", round, children, want)
			}
			before := srv.Counters().Requests[zkserver.OpSync]
			time.Sleep(s.Timeout())
			if n := srv.Counters().Requests[zkserver.OpSync] - before; n < 9 {
				t.Errorf("%d syncs in a timeout, beside the listings", n)
			}
			must.Do(t, s.Create(t.Context(), fmt.Sprintf("/x/%d", round), nil))
			want = append(want, int32(round+1))
		}
		beat(s)
		beat(s)
		must.Do(t, s.Create(t.Context(), "/missing", nil)) // a listing of a missing path has set no watch
		beat(s)
		beat(s)
		synctest.Wait()
		if want = append(want, 0); fmt.Sprint(children) != fmt.Sprint(want) {
			t.Errorf("the records have %v children; want %v", children, want)
		}
		known(t, srv)
		must.Do(t, s.Err())
	})
}

// A session holds something on a follower, and only reads. Reads do not extend it at the leader: the
// beat does, which sends syncs. Without a hold the pings do: go-zookeeper sends them whatever else is sent.
func TestAReaderKeepsItsSessionOnAKeepersFollower(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		for _, holds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, holds %t", like, holds), func(t *testing.T) {
				zktest.Bubble(t, func(t *testing.T) {
					srv := zkserver.New(zkserver.Config{Like: like})
					defer srv.Close()
					link := zktest.LinkTo(srv.Follower().ServeConn)
					s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, link.Dial))(t)
					defer closeNow(s)
					if holds {
						beginHold(t, s)
						defer s.EndHold()
					}
					for until := time.Now().Add(5 * s.Timeout()); time.Now().Before(until) && s.Err() == nil; time.Sleep(100 * time.Millisecond) {
						must.Get(s.Stat(t.Context(), "/"))(t)
					}
					must.Do(t, s.Err())
				})
			})
		}
	}
}

// A ticket of Keeper's is refused before anything is sent: a handshake would open another session.
func TestKeepersSessionIsNotResumed(t *testing.T) {
	onKeeper(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		ticket := s.Ticket()
		if err := s.Continues(); !errors.Is(err, recipes.ErrUnsupported) {
			t.Errorf("it says %v", err)
		}
		_, err := session.Resume(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, dialPipe(srv), ticket)
		if !errors.Is(err, recipes.ErrUnsupported) || errors.Is(err, recipes.ErrSessionLost) || !strings.Contains(err.Error(), "ClickHouse Keeper") {
			t.Error(err)
		}
		synctest.Wait()
		if all := srv.Sessions(); len(all) != 1 {
			t.Errorf("sessions %v", all)
		}
		must.Do(t, s.Err())
	})
}

// The members of a Keeper cannot be followed. That is a warning, and no request.
func TestKeepersMembersAreNotFollowed(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		srv := zkserver.New(zkserver.Config{Like: zkserver.Keeper22})
		defer srv.Close()
		var log bytes.Buffer
		s := piped(t, srv, recipes.SessionConfig{FollowServers: true, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})})
		synctest.Wait()
		if n := len(srv.Counters().Requests); n > 0 {
			t.Errorf("requests %v", srv.Counters().Requests)
		}
		closeNow(s)
		if !strings.Contains(log.String(), "cannot be followed: ClickHouse Keeper") {
			t.Errorf("the log is %q", log.String())
		}
	})
}

// A sync that is not answered makes a session of ZooKeeper move to another server. A session of Keeper
// cannot move: it waits, so that a hold survives an outage that is shorter than its deadline.
func TestKeepersSessionWaitsForItsServer(t *testing.T) {
	for _, like := range zkserver.Keepers() {
		zktest.Bubble(t, func(t *testing.T) {
			srv := zkserver.New(zkserver.Config{Like: like})
			defer srv.Close()
			follower := srv.Follower()
			link := zktest.LinkTo(follower.ServeConn)
			s := must.Get(session.Open(t.Context(), recipes.SessionConfig{Servers: []string{"server"}}, link.Dial))(t)
			defer closeNow(s)
			beginHold(t, s)
			defer s.EndHold()
			time.Sleep(2 * s.Timeout())
			for phase := range 11 {
				time.Sleep(s.Timeout() + time.Duration(phase)*s.Timeout()/110)
				follower.CutOff()
				time.Sleep(s.Timeout() * 2 / 5)
				follower.Heal()
			}
			time.Sleep(s.Timeout())
			if err := s.Err(); err != nil || s.Counters().Reconnects > 0 {
				t.Errorf("%v: %v after %d reconnects", like, err, s.Counters().Reconnects)
			}
		})
	}
}

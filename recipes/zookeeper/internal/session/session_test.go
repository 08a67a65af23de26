package session_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/session"
)

// go-zookeeper would open another session by itself (ClickHouse#116690) and send it what was
// queued for the first one (Helix#642).
func TestAnExpiredSessionIsNotReplaced(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	events := s.Events(t.Context())
	next(t, events)
	opened := srv.Counters().Requests
	srv.ExpireSession(s.ID())
	if err := awaitLost(t, s); !errors.Is(err, recipes.ErrExpired) || !errors.Is(err, recipes.ErrSessionLost) {
		t.Fatalf("lost with %v", err)
	}
	for e := range events {
		if e.State == recipes.Lost && !errors.Is(e.Reason, recipes.ErrExpired) {
			t.Errorf("event %v", e)
		}
	}
	if _, err := s.CreateProtected(zktest.Bounded(t), "/late", "lock-", nil); !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("create after the loss: %v", err)
	}
	if err := s.Close(zktest.Bounded(t)); err != nil {
		t.Errorf("close of an expired session: %v", err)
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
	if made := srv.Counters().Requests; made[zkserver.OpCreate] != opened[zkserver.OpCreate] {
		t.Error("a create reached the server after the loss")
	}
}

// ZOOKEEPER-4508: while all servers are down, no server reports the expiry.
func TestTheSessionIsLostWithoutAServersReport(t *testing.T) {
	onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
		began := time.Now()
		srv.Close()
		if err := awaitLost(t, s); !errors.Is(err, recipes.ErrDeadline) {
			t.Fatalf("lost with %v", err)
		}
		if took := time.Since(began); took > s.Timeout() {
			t.Errorf("lost after %v; the timeout is %v", took, s.Timeout())
		}
	})
}

// Helix#642: go-zookeeper keeps up to 16 requests that it could not send, even across an
// expiry.
func TestWhatWasQueuedForASessionDoesNotRunInTheNext(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	ctx := zktest.Bounded(t)
	gone := must.Get(s.Connected(ctx))(t)
	// The connection is cut before the create is served, so the create is sent again, or kept,
	// while the session expires.
	held := make(chan struct{})
	arrived := make(chan struct{})
	srv.SetFault(func(r zkserver.Request) zkserver.Fault {
		if r.Op != zkserver.OpCreate {
			return zkserver.Fault{}
		}
		select {
		case <-arrived:
		default:
			close(arrived)
		}
		return zkserver.Fault{Hold: held}
	})
	const n = 20
	failed := make(chan error, n)
	for range n {
		go func() {
			_, err := s.CreateProtected(ctx, "/", "lock-", nil)
			failed <- err
		}()
	}
	<-arrived
	srv.ExpireSession(s.ID())
	close(held)
	<-gone
	for range n {
		if err := <-failed; !errors.Is(err, recipes.ErrSessionLost) {
			t.Fatalf("got %v", err)
		}
	}
	must.Do(t, s.Close(ctx))
	for _, node := range srv.Tree() {
		if node.Stat.EphemeralOwner != 0 {
			t.Errorf("%s of session %#x", node.Path, node.Stat.EphemeralOwner)
		}
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
}

// The error of a session that is lost by its deadline says for how long no server has answered.
// With a hold, it also says how old the last contact is that the leader is known to have received,
// because the deadline counts from there.
func TestWhyASessionIsLostByItsClock(t *testing.T) {
	for _, holds := range []bool{false, true} {
		onVirtualTime(t, func(t *testing.T, srv *zkserver.Server, s *session.Session) {
			if holds {
				beginHold(t, s)
			}
			time.Sleep(s.Timeout())
			srv.Freeze(true)
			defer srv.Freeze(false)
			<-s.Done()
			err := s.Err()
			if !errors.Is(err, recipes.ErrDeadline) || !strings.Contains(err.Error(), "no server has answered for ") {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "the leader is not known to have heard of the session for ") != holds {
				t.Errorf("holding something: %v, and got %v", holds, err)
			}
			if s.State() != recipes.Lost {
				t.Errorf("its state is %v", s.State())
			}
		})
	}
}

// TestWaitEndsWithAnyOfItsEvents tests each of several events, with two events and with more.
func TestWaitEndsWithAnyOfItsEvents(t *testing.T) {
	s := open(t, to(embedded(t)))
	for _, n := range []int{1, 2, 3, 5} {
		for i := range n {
			events := make([]<-chan struct{}, n) // the other events are nil and never happen
			happens := make(chan struct{})
			events[i] = happens
			if session.Happened(events[i]) {
				t.Errorf("event %d of %d has happened too early", i, n)
			}
			close(happens)
			if err := s.Wait(t.Context(), "waiting", events...); err != nil || !session.Happened(events[i]) {
				t.Errorf("event %d of %d: %v", i, n, err)
			}
		}
	}
}

func TestWaitEndsWithItsContextAndWithTheSession(t *testing.T) {
	s := open(t, to(embedded(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx, "waiting for nothing", nil, nil); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "waiting for nothing: ") {
		t.Errorf("with an ended context: %v", err)
	}
	must.Do(t, s.Close(t.Context()))
	for _, events := range [][]<-chan struct{}{nil, {nil, nil}} {
		if err := s.Wait(t.Context(), "waiting", events...); !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("after the session's end: %v", err)
		}
	}
}

// A session does not remember the dialects of all paths that it has ever used.
func TestDialectsAreRememberedWithinBounds(t *testing.T) {
	s := new(session.Session)
	for n := range session.MostDialects {
		must.Do(t, s.UseDialect(strconv.Itoa(n), recipes.Curator))
	}
	if err := s.UseDialect("0", recipes.Kazoo); !errors.Is(err, recipes.ErrInvalid) {
		t.Errorf("a second dialect: %v", err)
	}
	must.Do(t, s.UseDialect("one more", recipes.Curator))
	must.Do(t, s.UseDialect("0", recipes.Kazoo))
}

package session_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/session"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(ensembletest.Owner{Tests: m}) }

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func embedded(t *testing.T) *zkserver.Server {
	t.Helper()
	srv, err := zkserver.Listen(zkserver.Config{MinSessionTimeout: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

func open(t *testing.T, cfg recipes.Config) *session.Session {
	t.Helper()
	s, err := session.Open(bounded(t), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(s) })
	return s
}

// closeNow closes a session without insisting on the server's answer.
func closeNow(s *session.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Close(ctx)
}

func to(srv *zkserver.Server) recipes.Config {
	return recipes.Config{Servers: []string{srv.Addr()}}
}

func next(t *testing.T, events <-chan recipes.Event) recipes.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
		panic("unreachable")
	}
}

func awaitLost(t *testing.T, s *session.Session) error {
	t.Helper()
	select {
	case <-s.Lost():
		return s.Err()
	case <-time.After(20 * time.Second):
		t.Fatal("the session is not lost")
		return nil
	}
}

func TestALostConnectionSuspendsTheSessionWhichGoesOn(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	events := s.Events(t.Context())
	if e := next(t, events); e.State != recipes.Connected {
		t.Fatalf("first event %v", e)
	}
	id := s.ID()
	srv.RefuseConnections(true)
	srv.CloseConnection(id)
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("then %v", e)
	}
	srv.RefuseConnections(false)
	if e := next(t, events); e.State != recipes.Connected {
		t.Fatalf("then %v", e)
	}
	if s.ID() != id || s.Err() != nil {
		t.Fatalf("session %#x, %v; was %#x", s.ID(), s.Err(), id)
	}
	if n := s.Counters().Reconnects; n != 1 {
		t.Errorf("%d reconnects", n)
	}
}

// The client library would open another session by itself (ClickHouse#116690),
// and run in it what was queued for the first (Helix#642).
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
	if _, err := s.CreateProtected(bounded(t), "/late", "lock-", nil); !errors.Is(err, recipes.ErrSessionLost) {
		t.Errorf("create after the loss: %v", err)
	}
	if err := s.Close(bounded(t)); err != nil {
		t.Errorf("close of an expired session: %v", err)
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
	if made := srv.Counters().Requests; made[zkserver.OpCreate] != opened[zkserver.OpCreate] {
		t.Error("a create reached the server after the loss")
	}
}

// ZOOKEEPER-4508: no expiry event while all servers are down.
func TestTheSessionIsLostThoughNoServerSaysSo(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.SessionTimeout = 300 * time.Millisecond
	s := open(t, cfg)
	began := time.Now()
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if err := awaitLost(t, s); !errors.Is(err, recipes.ErrDeadline) {
		t.Fatalf("lost with %v", err)
	}
	if took := time.Since(began); took > s.Timeout()+200*time.Millisecond {
		t.Errorf("lost after %v; the timeout is %v", took, s.Timeout())
	}
}

func TestOpenSaysWhatTheLastAttemptMet(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := session.Open(ctx, recipes.Config{Servers: []string{"127.0.0.1:1"}}, nil) // nobody listens there
	if !errors.Is(err, recipes.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	var refused *net.OpError
	if !errors.As(err, &refused) {
		t.Logf("the cause is told in words: %v", err)
	}
}

// go-zookeeper gives a handshake ten times the receive timeout, and its body
// for ever: one frozen server held the client for a minute.
func TestASilentServerDoesNotHoldTheHandshake(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // accepts in the kernel, never answers
	srv := embedded(t)
	for range 8 { // the order of servers is random
		s, err := session.Open(bounded(t), recipes.Config{
			Servers:        []string{silent.Addr().String(), srv.Addr()},
			ConnectTimeout: 100 * time.Millisecond,
			SessionTimeout: 10 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStrangerIsNotTakenForAServer(t *testing.T) {
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	go func() {
		for {
			c, err := stranger.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err = session.Open(ctx, recipes.Config{Servers: []string{stranger.Addr().String()}}, nil)
	if !errors.Is(err, recipes.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
}

func TestCloseConfirmsThoughTheConnectionIsDown(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	if _, err := s.CreateProtected(bounded(t), "/x", "lock-", nil); err != nil {
		t.Fatal(err)
	}
	events := s.Events(t.Context())
	next(t, events)
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("event %v", e)
	}
	closed := make(chan error)
	go func() { closed <- s.Close(bounded(t)) }()
	<-s.Lost()
	srv.RefuseConnections(false)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
}

func TestCloseDoesNotWaitForAServerLongerThanItsContext(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	srv.Freeze(true)
	defer srv.Freeze(false)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := s.Close(ctx); !errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 700*time.Millisecond {
		t.Errorf("close took %v of the 100 ms it was given", took)
	}
	if err := s.Err(); !errors.Is(err, recipes.ErrClosed) {
		t.Fatalf("the session says %v", err)
	}
}

func TestAListingTooLargeForOnePacketIsAnErrorAndNotALoop(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.MaxPacket = 4 << 10
	s, ctx := open(t, cfg), bounded(t)
	for range 100 {
		if _, err := s.CreateProtected(ctx, "/many", "lock-", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Children(ctx, "/many"); !errors.Is(err, recipes.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	if n := s.Counters().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
	if _, err := s.CreateProtected(ctx, "/few", "lock-", make([]byte, 4<<10)); !errors.Is(err, recipes.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	if names, err := s.Children(ctx, "/"); err != nil || slices.Contains(names, "few") {
		t.Fatalf("children of / are %q, %v", names, err)
	}
}

func TestCredentialsAreGivenAgainAfterAReconnect(t *testing.T) {
	check := func(t *testing.T, cfg recipes.Config, cut func(s *session.Session)) {
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
		cfg.ACL = []recipes.ACL{{Permissions: recipes.PermAll, Scheme: "auth"}}
		s, ctx := open(t, cfg), bounded(t)
		path, err := s.CreateProtected(ctx, "/private", "lock-", nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Digest, cfg.ACL = nil, nil
		if _, err := open(t, cfg).Get(ctx, path); !errors.Is(err, recipes.ErrAccessDenied) {
			t.Fatalf("a stranger reads: %v", err)
		}
		cut(s)
		if _, err := s.Get(ctx, path); err != nil {
			t.Fatalf("after the reconnect: %v", err)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		srv := embedded(t)
		check(t, to(srv), func(s *session.Session) { cutAndWait(t, srv, s) })
	})
	t.Run("real", func(t *testing.T) {
		check(t, recipes.Config{Servers: ensembletest.Shared(t).Addrs()}, func(*session.Session) {})
	})
}

// cutAndWait drops the session's connection and waits until it is back.
func cutAndWait(t *testing.T, srv *zkserver.Server, s *session.Session) {
	t.Helper()
	ctx := bounded(t)
	gone, err := s.Connected(ctx)
	if err != nil {
		t.Fatal(err)
	}
	srv.CloseConnection(s.ID())
	<-gone
	if _, err := s.Connected(ctx); err != nil {
		t.Fatal(err)
	}
}

// A later Close with less patience does not cut the first one short.
func TestTheFirstCloseDecidesHowLongItIsTried(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	events := s.Events(t.Context())
	next(t, events)
	srv.RefuseConnections(true)
	srv.CloseAllConnections()
	if e := next(t, events); e.State != recipes.Suspended {
		t.Fatalf("event %v", e)
	}
	first := make(chan error, 1)
	go func() { first <- s.Close(bounded(t)) }()
	<-s.Lost()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	for s.Close(ctx) == nil {
		t.Fatal("closed without a server")
	}
	srv.RefuseConnections(false)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
}

// A server that refuses the credentials answers, and keeps the session alive by
// each handshake; the session must end all the same.
func TestRefusedCredentialsEndTheSession(t *testing.T) {
	srv := embedded(t)
	cfg := to(srv)
	cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
	refusing := newRefuser(t, srv.Addr())
	cfg.Servers = []string{refusing.addr}
	s := open(t, cfg)
	refusing.refuse.Store(true)
	srv.CloseConnection(s.ID())
	if err := awaitLost(t, s); !errors.Is(err, recipes.ErrAuthFailed) {
		t.Fatalf("lost with %v", err)
	}
}

// go-zookeeper/zk#163: a failed re-authentication can wedge the connection.
func TestAFailedReauthenticationIsTriedAgainOrEndsTheSession(t *testing.T) {
	for _, times := range []int{1, 3, -1} {
		srv := embedded(t)
		cfg := to(srv)
		cfg.SessionTimeout = 500 * time.Millisecond
		cfg.Digest = &recipes.Digest{User: "jane", Password: "secret"}
		s := open(t, cfg)
		left := times
		srv.SetFault(func(r zkserver.Request) zkserver.Fault {
			if r.Op != zkserver.OpAuth || left == 0 {
				return zkserver.Fault{}
			}
			left--
			return zkserver.Fault{CloseBefore: true}
		})
		srv.CloseConnection(s.ID())
		if times < 0 {
			if err := awaitLost(t, s); !errors.Is(err, recipes.ErrSessionLost) {
				t.Fatal(err)
			}
			continue
		}
		if _, err := s.Children(bounded(t), "/"); err != nil {
			t.Fatalf("after %d failures: %v", times, err)
		}
	}
}

// Helix#642: go-zookeeper keeps up to 16 requests that it could not send, also
// across an expiry.
func TestWhatWasQueuedForASessionDoesNotRunInTheNext(t *testing.T) {
	srv := embedded(t)
	s := open(t, to(srv))
	ctx := bounded(t)
	gone, err := s.Connected(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The create reaches the server's door and is not let in, so that it is
	// sent again, or kept, while the session expires.
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
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, node := range srv.Tree() {
		if node.Stat.EphemeralOwner != 0 {
			t.Errorf("%s of session %#x", node.Path, node.Stat.EphemeralOwner)
		}
	}
	if ids := srv.Sessions(); len(ids) != 0 {
		t.Errorf("sessions at the server: %#x", ids)
	}
}

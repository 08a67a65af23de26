package recipestest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/relay"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/testall"
	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestFrozenServer: a server is frozen for longer than the session timeout. The holder's session
// ends by its own deadline, before another contender can be granted.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := ensembletest.Start(t, ensembletest.Quick(1)).Server(0)
	s := open(t, zookeeper.Open, time.Second, server.Addr())
	patientSession := open(t, zookeeper.Open, 30*time.Second, server.Addr())
	h := acquire(t, s, "/frozen")
	next := wait(t, patientSession, "/frozen")
	if err := server.Freeze(); err != nil {
		t.Skip(err)
	}
	defer server.Thaw()
	await(t, h.Done(), "the loss of the hold")
	if err := h.Err(); !errors.Is(err, recipes.ErrDeadline) || !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("lost by %v; want the session's own deadline", err)
	}
	if !next.waiting() {
		t.Error("a frozen server granted the lock to the next contender")
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	if got := next.granted(t); got.Token() <= h.Token() {
		t.Errorf("token %d after %d", got.Token(), h.Token())
	}
	if err := patientSession.Err(); err != nil {
		t.Errorf("the session with the long timeout is lost: %v", err)
	}
	if err := h.Write(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("a write of the lost hold: %v", err)
	}
}

// TestLossComesBeforeTheNextGrant: a holder that is cut off notices the loss before the server
// grants the lock to another contender.
func TestLossComesBeforeTheNextGrant(t *testing.T) {
	t.Parallel()
	for range testall.Count(1, 3) {
		addrs := ensembletest.Shared(t).Addrs()
		way, err := relay.Listen(addrs, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(way.Cut)
		path := "/partition-" + uuid.NewString()
		s := open(t, zookeeper.Open, 5*time.Second, way.Addr()) // a busy machine can be silent for a second
		h := acquire(t, s, path)
		lost := make(chan time.Time, 1)
		ch := h.Done()
		go func() {
			<-ch
			lost <- time.Now()
		}()
		next := wait(t, open(t, zookeeper.Open, 0, addrs...), path)
		way.Hold()
		next.granted(t)
		// The loss came first: it can be read now, and its time is earlier.
		if err := h.Err(); !errors.Is(err, recipes.ErrDeadline) {
			t.Errorf("the next contender is granted, and the first one's Err is %v", err)
		}
		select {
		case at := <-lost:
			if at.After(next.at) {
				t.Errorf("lost %v after the next grant", at.Sub(next.at))
			}
		case <-time.After(watchdog.Patience):
			t.Error("not lost")
		}
	}
}

// TestLeadersSessionsKilled expires the session of each leader in turn, on the embedded server.
// The contract tests cover an expiry on a real server.
func TestLeadersSessionsKilled(t *testing.T) {
	t.Parallel()
	const path = "/killed"
	server := embedded(t)
	watching, err := open(t, zookeeper.Open, 0, server.Addr()).Election(path, recipes.ElectionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	leaders, err := watching.Observe(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if first := <-leaders; !first.None() {
		t.Fatalf("%+v leads", first)
	}
	type candidate struct {
		session recipes.Client
		won     chan recipes.Leadership
	}
	var candidates []candidate
	for i := range 5 {
		strategy := recipes.Strategies()[i%len(recipes.Strategies())]
		joined := make(chan struct{})
		c := candidate{open(t, zookeeper.Open, 0, server.Addr()), make(chan recipes.Leadership, 1)}
		e, err := c.session.Election(path, recipes.ElectionConfig{Strategy: strategy, Joined: func(recipes.Place) { close(joined) }})
		if err != nil {
			t.Fatal(err)
		}
		ctx := patient(t)
		go func() {
			defer close(c.won)
			if l, err := e.Campaign(ctx, nil); err == nil {
				c.won <- l
			}
		}()
		await(t, joined, "joining the wait queue")
		candidates = append(candidates, c)
	}
	for _, c := range candidates {
		l := <-c.won
		if l == nil {
			t.Fatal("Campaign failed")
		}
		if got := <-leaders; got.Znode != l.Znode() {
			t.Fatalf("observed %+v; want %s", got, l.Znode())
		}
		server.ExpireSession(c.session.ID())
		await(t, l.Done(), "the loss of the leadership")
		if err := l.Err(); !errors.Is(err, recipes.ErrExpired) {
			t.Errorf("lost by %v", err)
		}
	}
	if last := <-leaders; !last.None() {
		t.Errorf("%+v leads after the last expiry", last)
	}
}

// TestEnsembleLeaderKilled: while contenders hold and wait, the ensemble's leader is killed. All
// grants and places are kept, because the sessions outlive the election.
func TestEnsembleLeaderKilled(t *testing.T) {
	t.Parallel()
	e := ensembletest.Start(t, ensembletest.Quick(3))
	ctx := patient(t)
	history := newHistory()
	const contenders = 6
	var sessions []recipes.Client
	for range contenders {
		sessions = append(sessions, open(t, zookeeper.Open, 30*time.Second, e.Addrs()...))
	}
	h := acquire(t, sessions[0], "/ensemble")
	lost := h.Done()
	var waiters []*waiter
	for _, s := range sessions[1:] {
		waiters = append(waiters, wait(t, s, "/ensemble"))
	}
	killLeader(t, e)
	if _, err := e.Leader(ctx); err != nil {
		t.Fatal(err)
	}
	history.record(0, granted, h.Token)
	for i, w := range waiters {
		for _, later := range waiters[i:] {
			if !later.waiting() {
				t.Fatalf("waiter %d or a later one is granted out of turn: %v", i, later.err)
			}
		}
		history.record(i, wrote, func() recipes.Token {
			// The connection can be lost during a write.
			for {
				switch err := h.Write(ctx); {
				case err == nil:
					return h.Token()
				case !errors.Is(err, recipes.ErrUnknownOutcome):
					t.Fatalf("write: %v", err)
				}
			}
		})
		history.record(i, released, func() recipes.Token {
			if err := h.Release(ctx); err != nil {
				t.Fatalf("release: %v", err)
			}
			return h.Token()
		})
		await(t, lost, "Done")
		if err := h.Err(); !errors.Is(err, recipes.ErrReleased) {
			t.Errorf("waiter %d's predecessor has lost the lock: %v", i, err)
		}
		history.record(i+1, granted, func() recipes.Token {
			h = w.granted(t)
			return h.Token()
		})
		lost = h.Done()
	}
	history.check(t, exclusive)
	for i, s := range sessions {
		if err := s.Err(); err != nil {
			t.Errorf("session %d is lost: %v", i, err)
		}
	}
}

func killLeader(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	leader, err := e.Leader(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
}

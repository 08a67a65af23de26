package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// PITFALLS 61: a follower answers a ping by itself, and reports it when the leader asks. Here the
// follower dies at every phase of both cycles, or it is cut off from the leader and continues to
// answer.
func TestAHolderWhoseFollowerFailsKnowsItBeforeTheNextIsGranted(t *testing.T) {
	const timeout = 4 * time.Second // the smallest: two ticks
	for _, failure := range []struct {
		name string
		of   func(*zkserver.Follower)
	}{
		{"dies", (*zkserver.Follower).Crash},
		{"is cut off", (*zkserver.Follower).CutOff},
	} {
		t.Run(failure.name, func(t *testing.T) {
			for phase := time.Duration(0); phase < timeout; phase += 130 * time.Millisecond {
				t.Run(phase.String(), func(t *testing.T) {
					zktest.Bubble(t, func(t *testing.T) {
						failFollower(t, timeout, phase, failure.of)
					})
				})
			}
		})
	}
}

func failFollower(t *testing.T, timeout, phase time.Duration, fail func(*zkserver.Follower)) {
	srv := zkserver.New(zkserver.Config{})
	defer srv.Close()
	follower := srv.Follower()
	theirs := zktest.LinkTo(follower.ServeConn)
	holder := theirs.Open(t, timeout)
	waiter := zktest.LinkTo(srv.ServeConn).Open(t, timeout)
	hold := zktest.Acquire(t, holder)
	joined := make(chan struct{})
	granted := make(chan time.Time, 1)
	l := must.Get(waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))(t)
	go func() {
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Error(err)
		} else if hold.Err() == nil {
			t.Error("granted before the holder's Done has closed")
		}
		granted <- time.Now()
	}()
	<-joined
	lost := hold.Done()
	time.Sleep(3*timeout + phase) // virtual
	if err := hold.Err(); err != nil {
		t.Fatalf("lost though all is well: %v", err)
	}
	theirs.Lead(nil)
	fail(follower)
	failed := time.Now()
	select {
	case <-lost:
	case <-time.After(10 * timeout): // virtual
		t.Error("Done never closed")
		return
	}
	closed := time.Since(failed)
	if next := (<-granted).Sub(failed); closed >= next {
		t.Errorf("Done closed %v after the failure, the next contender was granted %v after it", closed, next)
	}
	if err := hold.Err(); !errors.Is(err, recipes.ErrDeadline) {
		t.Errorf("lost with %v", err)
	}
	if closed < timeout/4 {
		t.Errorf("Done closed %v after the failure: too early", closed)
	}
	must.Report(t, waiter.Close(t.Context()))
	holder.Close(t.Context())
}

// PITFALLS 63: the server of a waiter lags. The waiter's session has expired and another contender
// holds when the server reports that the predecessor has left. Reads from that server show the
// waiter first in the wait queue.
func TestADepartureThatIsReportedLateGrantsNothing(t *testing.T) {
	for _, strategy := range recipes.Strategies() {
		t.Run(string(strategy)+"/release", func(t *testing.T) {
			departureIsToldLate(t, strategy, func(ctx context.Context, _ recipes.Client, h recipes.Hold) error { return h.Release(ctx) })
		})
		t.Run(string(strategy)+"/session's end", func(t *testing.T) {
			departureIsToldLate(t, strategy, func(ctx context.Context, s recipes.Client, _ recipes.Hold) error { return s.Close(ctx) })
		})
	}
}

func departureIsToldLate(t *testing.T, strategy recipes.Strategy, leave func(context.Context, recipes.Client, recipes.Hold) error) {
	zktest.Bubble(t, func(t *testing.T) {
		const timeout = 10 * time.Second
		srv := zkserver.New(zkserver.Config{})
		defer srv.Close()
		follower := srv.Follower()
		lags := zktest.LinkTo(follower.ServeConn).Open(t, timeout)
		holder, next := zktest.LinkTo(srv.ServeConn).Open(t, timeout), zktest.LinkTo(srv.ServeConn).Open(t, timeout)
		lock := func(s recipes.Client, joined func(recipes.Place)) recipes.Lock {
			return must.Get(s.Lock("/deadline", recipes.LockConfig{Strategy: strategy, Joined: joined}))(t)
		}
		first := must.Get(lock(holder, nil).Acquire(t.Context()))(t)
		joined := make(chan struct{}, 2)
		wait := func(s recipes.Client) <-chan recipes.Hold {
			granted := make(chan recipes.Hold, 1)
			l := lock(s, func(recipes.Place) { joined <- struct{}{} })
			go func() {
				hold, err := l.Acquire(t.Context())
				if err == nil {
					granted <- hold
				} else if s == next {
					t.Error(err)
				}
				close(granted)
			}()
			<-joined
			synctest.Wait()
			return granted
		}
		late, present := wait(lags), wait(next)
		follower.CutOff()
		must.Do(t, leave(t.Context(), holder, first))
		follower.Lag()
		hold := <-present // the session that lags has expired
		follower.Deliver()
		synctest.Wait()
		select {
		case h, granted := <-late:
			if granted && h.Err() == nil {
				t.Errorf("granted with token %d while the holder of %d holds", h.Token(), hold.Token())
			}
		default: // the late contender still waits for the leader's answer
		}
		if err := hold.Err(); err != nil {
			t.Errorf("the present holder: %v", err)
		}
		follower.Heal()
		if _, granted := <-late; granted {
			t.Error("granted in a session that has expired")
		}
		if err := lags.Err(); !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("the session that lagged: %v", err)
		}
		for _, s := range []recipes.Client{lags, holder, next} {
			s.Close(t.Context())
		}
	})
}

// A session learns from another one that something exists or has ended, and reads from a server that
// has not applied that yet. The recipe must not refuse the call because of what that server shows.
func TestAServerThatLagsRefusesNothing(t *testing.T) {
	const path = "/app/it"
	transaction := func(s recipes.Client) recipes.Transaction {
		return must.Get(s.Transaction(path, recipes.TransactionConfig{}))(t)
	}
	voted := func(ctx context.Context, lags, other recipes.Client) recipes.Site {
		must.Do(t, transaction(other).Begin(ctx, nil, "1"))
		site := must.Get(transaction(lags).Join(ctx, "1"))(t)
		must.Do(t, site.Vote(ctx, recipes.VoteCommit))
		return site
	}
	gone := func(ctx context.Context, other recipes.Client, err error) error {
		if _, status := transaction(other).Status(ctx); err == nil && !errors.Is(status, recipes.ErrNoTransaction) {
			return fmt.Errorf("the transaction still exists, or: %w", status)
		}
		return err
	}
	// Each case calls lag before the other session's last change, and returns the call.
	for name, use := range map[string]func(ctx context.Context, lags, other recipes.Client, lag func()) (call func() error){
		"completing a part": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			site := voted(ctx, lags, other)
			lag()
			must.Get(transaction(other).Coordinate(ctx))(t)
			return func() error { return gone(ctx, other, site.Done(ctx)) }
		},
		"forgetting a transaction": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			voted(ctx, lags, other)
			lag()
			must.Get(transaction(other).Coordinate(ctx))(t)
			must.Do(t, must.Get(transaction(other).Join(ctx, "1"))(t).Done(ctx))
			return func() error { return gone(ctx, other, transaction(lags).Forget(ctx)) }
		},
		"joining a transaction": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			lag()
			must.Do(t, transaction(other).Begin(ctx, nil, "1"))
			return func() error { _, err := transaction(lags).Join(ctx, "1"); return err }
		},
		"deleting a key": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			lag()
			must.Get(zktest.ConfigAt(t, other, path).Set(ctx, "a", nil, recipes.AnyRevision))(t)
			return func() error { return zktest.ConfigAt(t, lags, path).Delete(ctx, "a", recipes.AnyRevision) }
		},
		"setting a key of a revision": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			lag()
			revision := must.Get(zktest.ConfigAt(t, other, path).Set(ctx, "a", nil, recipes.AnyRevision))(t)
			return func() error { _, err := zktest.ConfigAt(t, lags, path).Set(ctx, "a", nil, revision); return err }
		},
		"unregistering a name": func(ctx context.Context, lags, other recipes.Client, lag func()) func() error {
			lag()
			must.Do(t, zktest.NamesAt(t, other, path).RegisterPersistent(ctx, "a", nil))
			return func() error { return zktest.NamesAt(t, lags, path).Unregister(ctx, "a", 0) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				srv := zkserver.New(zkserver.Config{})
				defer srv.Close()
				follower, ctx := srv.Follower(), t.Context()
				lags, other := zktest.LinkTo(follower.ServeConn).Open(t, 10*time.Second), zktest.LinkTo(srv.ServeConn).Open(t, 10*time.Second)
				call := use(ctx, lags, other, func() { follower.CutOff(); follower.Lag() })
				result := make(chan error, 1)
				go func() { result <- call() }()
				synctest.Wait()
				if len(result) > 0 {
					t.Error("the call has not waited until the server has caught up")
				}
				follower.Heal()
				must.Report(t, <-result)
				must.Do(t, errors.Join(lags.Close(ctx), other.Close(ctx)))
			})
		})
	}
}

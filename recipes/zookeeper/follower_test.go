package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// link leads to a server, or a follower, over pipes; nowhere once it is cut.
type link struct {
	serve func(net.Conn)
	cut   bool
}

func (l *link) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if l.cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	go l.serve(server)
	return client, nil
}

func (l *link) open(t *testing.T, timeout time.Duration) recipes.Session {
	t.Helper()
	s, err := zookeeper.OpenWith(l.dial)(t.Context(), recipes.SessionConfig{
		Servers: []string{"server"}, SessionTimeout: timeout, MaxPacket: 64 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// PITFALLS 61: a follower answers a ping by itself, and tells the leader when the
// leader asks. Here it dies, at every phase of both cycles, or is cut off from the
// leader and goes on answering.
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
					synctest.Test(t, func(t *testing.T) {
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
	theirs := &link{serve: follower.ServeConn}
	holder := theirs.open(t, timeout)
	waiter := (&link{serve: srv.ServeConn}).open(t, timeout)
	hold := acquire(t, holder)
	joined := make(chan struct{})
	granted := make(chan time.Time, 1)
	l := must[recipes.Lock](t)(waiter.Lock("/deadline", recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }}))
	go func() {
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Error(err)
		} else if hold.Err() == nil {
			t.Error("granted while the holder still believes that it holds")
		}
		granted <- time.Now()
	}()
	<-joined
	lost := hold.Done()
	time.Sleep(3*timeout + phase) // virtual
	if err := hold.Err(); err != nil {
		t.Fatalf("lost though all is well: %v", err)
	}
	theirs.cut = true
	fail(follower)
	failed := time.Now()
	select {
	case <-lost:
	case <-time.After(10 * timeout): // virtual
		t.Error("never told")
		return
	}
	told := time.Since(failed)
	if next := (<-granted).Sub(failed); told >= next {
		t.Errorf("told %v after the failure, the next granted %v after it", told, next)
	}
	if err := hold.Err(); !errors.Is(err, recipes.ErrDeadline) {
		t.Errorf("lost with %v", err)
	}
	if told < timeout/4 {
		t.Errorf("told %v after the failure: too nervous", told)
	}
	if err := waiter.Close(t.Context()); err != nil {
		t.Error(err)
	}
	holder.Close(t.Context())
}

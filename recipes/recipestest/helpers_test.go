package recipestest_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/recipestest"
)

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog.Patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, opener recipes.Opener, timeout time.Duration, servers ...string) recipes.Client {
	t.Helper()
	s, err := opener(patient(t), recipes.SessionConfig{Servers: servers, SessionTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSession(s) })
	return s
}

// closeSession closes a session, which may be lost. No test depends on the result.
func closeSession(s recipes.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // clean-up: the server may not answer
	defer cancel()
	_ = s.Close(ctx)
}

func acquire(t testing.TB, s recipes.Recipes, path string) recipes.Hold {
	t.Helper()
	l, err := s.Lock(path, recipes.LockConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Acquire(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// waiter is a contender that waits for a lock in the background.
type waiter struct {
	done chan struct{}
	hold recipes.Hold
	err  error
	at   time.Time
}

// wait starts a contender, and returns when it has joined the wait queue.
func wait(t testing.TB, s recipes.Recipes, path string) *waiter {
	t.Helper()
	ctx := patient(t)
	joined := make(chan struct{})
	l, err := s.Lock(path, recipes.LockConfig{Joined: func(recipes.Place) { close(joined) }})
	if err != nil {
		t.Fatal(err)
	}
	w := &waiter{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.hold, w.err = l.Acquire(ctx)
		w.at = time.Now()
	}()
	t.Cleanup(func() { <-w.done })
	await(t, joined, "joining the wait queue")
	return w
}

func (w *waiter) waiting() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

func (w *waiter) granted(t testing.TB) recipes.Hold {
	t.Helper()
	await(t, w.done, "the grant")
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.hold
}

func await(t testing.TB, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(watchdog.Patience):
		t.Fatalf("%s: nothing until the end of the test", what)
	}
}

// connect opens a plain ZooKeeper session.
func connect(t testing.TB, servers ...string) *zk.Conn {
	t.Helper()
	return recipestest.Connect(patient(t), t, servers)
}

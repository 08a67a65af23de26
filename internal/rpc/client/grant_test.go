package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// matches reports an error that does not match all of wants.
func matches(t *testing.T, err error, wants ...error) {
	t.Helper()
	for _, want := range wants {
		if !errors.Is(err, want) {
			t.Errorf("%v does not match %q", err, want)
		}
	}
}

func otherLock(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock("/other", recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(ctx(t)))(t)
}

// The write is not sent again.
func TestWriteWhoseAnswerIsLostHasAnUnknownOutcome(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	h := acquire(t, l.open(t, 0))
	c, cancel := context.WithCancel(ctx(t))
	spy.loseAnswer("Write", cancel)
	err := h.Write(c, recipes.Create("/d", nil))
	matches(t, err, recipes.ErrUnknownOutcome, context.Canceled)
	if errors.Is(err, recipes.ErrNotHeld) || spy.count("Write") != 1 {
		t.Errorf("%v after %d writes", err, spy.count("Write"))
	}
}

// The test calls every method that the client can answer from the stream's messages.
func TestStreamedStateNeedsNoCall(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	h := acquire(t, s)
	before := spy.total()
	for range 100 {
		_, _, _, _ = s.ID(), s.Timeout(), s.State(), s.Err()
		_, _, _ = h.Token(), h.Znode(), h.Err()
		_ = s.Done()
	}
	if n := spy.total() - before; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// The plugin remembers a limited number of ended grants.
func TestForgottenReleaseHasSucceeded(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	h := acquire(t, s)
	spy.loseAnswer("Release", func() { // and the call is repeated
		for range 1024 + 1 {
			must.Report(t, otherLock(t, s).Release(ctx(t)))
		}
	})
	must.Report(t, h.Release(ctx(t)))
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
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

func TestDeletionByAnotherClientClosesDoneIfWatched(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	watched, silent := acquire(t, s), otherLock(t, s)
	lost := watched.Done()
	l.world.Remove(silent.Znode())
	l.world.Remove(watched.Znode())
	closes(t, "Done", lost)
	matches(t, watched.Err(), recipes.ErrNotHeld, recipes.ErrRemoved)
	if errors.Is(watched.Err(), recipes.ErrSessionLost) || s.Err() != nil {
		t.Errorf("the session is lost too: %v", s.Err())
	}
	// The other grant is not watched: a write detects its loss.
	if err := silent.Err(); err != nil || spy.count("Watch") != 1 {
		t.Errorf("%v after %d watches", err, spy.count("Watch"))
	}
	matches(t, silent.Write(ctx(t)), recipes.ErrNotHeld, recipes.ErrRemoved)
	matches(t, silent.Err(), recipes.ErrRemoved)
	closes(t, "Done", silent.Done())
	matches(t, silent.Release(ctx(t)), recipes.ErrNotHeld)
}

func otherLock(t *testing.T, s recipes.Recipes) recipes.Hold {
	t.Helper()
	l := must.Get(s.Lock("/other", recipes.LockConfig{}))(t)
	return must.Get(l.Acquire(ctx(t)))(t)
}

func TestLossesAreNotDroppedUnderALoad(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	const n = 200
	holds := make([]recipes.Hold, n)
	for i := range holds {
		lk, err := s.Lock("/many/"+string(rune('a'+i%26))+string(rune('a'+i/26)), recipes.LockConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if holds[i], err = lk.Acquire(ctx(t)); err != nil {
			t.Fatal(err)
		}
		holds[i].Done()
	}
	for _, h := range holds {
		l.world.Remove(h.Znode())
	}
	for _, h := range holds {
		closes(t, "Done", h.Done())
		matches(t, h.Err(), recipes.ErrRemoved)
	}
}

func TestReleaseClosesLostFirstAndCanBeRepeated(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	h := acquire(t, l.open(t, 0))
	lostFirst := false
	spy.loseAnswer("Release", func() { // and the call is repeated
		select {
		case <-h.Done():
			lostFirst = true
		default:
		}
	})
	for range 3 {
		must.Do(t, h.Release(ctx(t)))
	}
	matches(t, h.Err(), recipes.ErrReleased, recipes.ErrNotHeld)
	if !lostFirst || spy.count("Release") != 2 {
		t.Errorf("lost first: %v, %d calls", lostFirst, spy.count("Release"))
	}
	matches(t, h.Write(ctx(t)), recipes.ErrReleased)
}

func TestReleaseContinuesWhenItsContextEnds(t *testing.T) {
	l := newLink(t)
	s := l.open(t, 0)
	h := acquire(t, s)
	ended, cancel := context.WithCancel(ctx(t))
	cancel()
	l.wire.freeze()
	matches(t, h.Release(ended), context.Canceled)
	l.wire.thaw()
	l.inLine(t, 0)
	must.Report(t, h.Release(ctx(t)))
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

func TestWriteOverABrokenConnectionHasAnUnknownOutcome(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	h := acquire(t, s)
	spy.loseAnswer("Write", func() { _ = l.wire.Close(); <-s.Done() })
	err := h.Write(ctx(t), recipes.Create("/d", nil))
	matches(t, err, recipes.ErrUnknownOutcome, recipes.ErrPluginLost)
	if errors.Is(err, recipes.ErrNotHeld) {
		t.Errorf("%v claims that nothing was written", err)
	}
}

// The stream reports the loss before the call is answered. The loss does not contain the
// call's outcome.
func TestThePluginsOutcomeSurvivesTheSession(t *testing.T) {
	outcomes := []error{recipes.ErrUnknownOutcome, recipes.ErrNotHeld}
	for i, outcome := range outcomes {
		spy := newSpy()
		l := newLink(t, spy.option())
		s := l.open(t, 0)
		h := acquire(t, s)
		spy.answer("Write", func() error {
			l.world.Session(0).Lose(recipes.ErrExpired)
			<-s.Done()
			return rpcwire.ToStatus(fmt.Errorf("write: %w: %w", outcome, recipes.ErrExpired), nil)
		})
		err := h.Write(ctx(t))
		matches(t, err, outcome, recipes.ErrExpired)
		if other := outcomes[1-i]; errors.Is(err, other) {
			t.Errorf("%v matches %q", err, other)
		}
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

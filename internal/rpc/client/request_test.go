package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The test loses the answer of Abandon too.
func TestAbandonIsRepeatedUntilItIsAnswered(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	c, cancel := context.WithCancel(ctx(t))
	answered := make(chan struct{})
	spy.loseAnswer("Acquire", cancel)
	spy.loseAnswer("Abandon", func() { close(answered) })
	if _, err := lock(t, s, recipes.LockConfig{}).Acquire(c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	closes(t, "the first answer", answered)
	l.inLine(t, 0)
	must.Report(t, s.Close(ctx(t)))
}

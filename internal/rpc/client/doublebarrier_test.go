package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestLeaveThatIsNotAnsweredIsAbandoned: the call may not have arrived, and the others
// would wait for the member.
func TestLeaveThatIsNotAnsweredIsAbandoned(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	b, err := s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Enter(ctx(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	abandoned := make(chan struct{})
	c, cancel := context.WithCancel(ctx(t))
	spy.loseAnswer("LeaveDoubleBarrier", cancel)
	spy.answer("Abandon", func() error { close(abandoned); return nil })
	if err := p.Leave(c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closes(t, "Abandon", abandoned)
}

// The plugin is asked to tell of the member's removal, though nobody asks for Done.
func TestAMemberIsWatchedThoughNobodyAsks(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	b, err := s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan struct{})
	spy.answer("Watch", func() error { close(watched); return nil })
	if _, err := b.Enter(ctx(t), nil); err != nil {
		t.Fatal(err)
	}
	closes(t, "Watch", watched)
}

package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The call may not have arrived, and the other members would wait.
func TestLeaveThatIsNotAnsweredIsAbandoned(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	b := must.Get(s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1}))(t)
	p := must.Get(b.Enter(ctx(t), nil))(t)
	abandoned := make(chan struct{})
	c, cancel := context.WithCancel(ctx(t))
	spy.loseAnswer("LeaveDoubleBarrier", cancel)
	spy.answer("Abandon", func() error { close(abandoned); return nil })
	if err := p.Leave(c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	closes(t, "Abandon", abandoned)
}

// The plugin is asked to report the removal of a member even if the application never calls
// Done.
func TestAMemberIsAlwaysWatched(t *testing.T) {
	spy := newSpy()
	s := newServed(t, spy.option()).open(t, 0)
	b := must.Get(s.DoubleBarrier("/b", recipes.DoubleBarrierConfig{Size: 1}))(t)
	watched := make(chan struct{})
	spy.answer("Watch", func() error { close(watched); return nil })
	must.Get(b.Enter(ctx(t), nil))(t)
	closes(t, "Watch", watched)
}

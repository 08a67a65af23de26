package link_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rpcwire "github.com/zkrecipes/zkrecipes/internal/rpc/wire"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// The session was lost before the answer. The element may have been deleted, or may be
// delivered again.
func TestUnansweredEndOfADeliveryHasAnUnknownOutcome(t *testing.T) {
	for call, end := range map[string]func(recipes.Delivery, context.Context) error{
		"AcknowledgeElement": recipes.Delivery.Ack,
		"Release":            recipes.Delivery.Return,
	} {
		t.Run(call, func(t *testing.T) {
			spy := newSpy()
			l := newLink(t, spy.option())
			s := l.open(t, 0)
			d := received(t, s)
			spy.loseAnswer(call, func() { _ = l.wire.Close(); <-s.Done() })
			matches(t, end(d, ctx(t)), recipes.ErrNotHeld, recipes.ErrUnknownOutcome, recipes.ErrPluginLost)
		})
	}
}

func received(t *testing.T, s recipes.Recipes) recipes.Delivery {
	t.Helper()
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	must.Get(q.Put(t.Context(), nil))(t) // without a deadline
	return must.Get(q.Receive(ctx(t)))(t)
}

// If a plugin does not know the element, an earlier call has ended the delivery. Whether that call
// acknowledged the element is then unknown.
func TestEndOfADeliveryIsJudgedByWhatWasSent(t *testing.T) {
	nothing := fmt.Errorf("%w: request 1 holds nothing", recipes.ErrNotHeld)
	type end struct {
		call string
		of   func(recipes.Delivery, context.Context) error
		what string
	}
	ack := end{"AcknowledgeElement", recipes.Delivery.Ack, "acknowledge"}
	ret := end{"Release", recipes.Delivery.Return, "return"}
	for _, test := range []struct {
		name          string
		end           end
		lost          bool  // the first answer is lost
		answer        error // the answer that arrives; nil means the plugin's own
		held, unknown bool
	}{
		{"an acknowledgement", ack, false, nil, true, false},
		{"an acknowledgement repeated", ack, true, nil, true, false},
		{"an acknowledgement of nothing", ack, false, nothing, false, false},
		{"an acknowledgement repeated and forgotten", ack, true, nothing, false, true},
		{"an acknowledgement repeated, and removed", ack, true, fmt.Errorf("%w: %w", recipes.ErrNotHeld, recipes.ErrRemoved), false, false},
		{"a return", ret, false, nil, true, false},
		{"a return repeated", ret, true, nil, true, false},
		{"a return of nothing", ret, false, nothing, false, false},
		{"a return repeated and forgotten", ret, true, nothing, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			spy := newSpy()
			d := received(t, newLink(t, spy.option()).open(t, 0))
			answer := func() {
				if test.answer != nil {
					spy.answer(test.end.call, func() error { return rpcwire.ToStatus(test.answer) })
				}
			}
			if test.lost {
				spy.loseAnswer(test.end.call, answer)
			} else {
				answer()
			}
			err := test.end.of(d, ctx(t))
			if errors.Is(err, recipes.ErrNotHeld) == test.held || errors.Is(err, recipes.ErrUnknownOutcome) != test.unknown || test.held && err != nil {
				t.Error(err)
			}
			if err != nil && !strings.Contains(err.Error(), test.end.what) {
				t.Errorf("%q does not say what was tried: %s", err, test.end.what)
			}
		})
	}
}

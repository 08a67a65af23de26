package client_test

import (
	"context"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// TestEndOfADeliveryThatIsNotAnsweredHasNoKnownOutcome: the session was lost before the
// answer. The element may be gone, or be delivered again.
func TestEndOfADeliveryThatIsNotAnsweredHasNoKnownOutcome(t *testing.T) {
	for call, end := range map[string]func(recipes.Delivery, context.Context) error{
		"AcknowledgeElement": recipes.Delivery.Ack,
		"Release":            recipes.Delivery.Return,
	} {
		t.Run(call, func(t *testing.T) {
			spy := newSpy()
			l := newServed(t, spy.option())
			s := l.open(t, 0)
			q, err := s.Queue("/q", recipes.QueueConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Put(ctx(t), nil); err != nil {
				t.Fatal(err)
			}
			d, err := q.Receive(ctx(t))
			if err != nil {
				t.Fatal(err)
			}
			spy.loseAnswer(call, func() { _ = l.wire.Close(); <-s.Done() })
			matches(t, end(d, ctx(t)), recipes.ErrNotHeld, recipes.ErrUnknownOutcome, recipes.ErrPluginLost)
		})
	}
}

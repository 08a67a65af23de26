package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// An element that may be put can be received.
func TestTheLargestElementIsReceived(t *testing.T) {
	srv, ctx := embedded(t), bounded(t)
	q := queueOf(t, open(t, srv), "/q", recipes.QueueConfig{})
	const most = 64<<10 - 3<<10
	if _, err := q.Put(ctx, make([]byte, most+1)); !errors.Is(err, recipes.ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	must[recipes.ElementID](t)(q.Put(ctx, make([]byte, most)))
	d := must[recipes.Delivery](t)(q.Receive(ctx))
	if n := len(d.Element().Data); n != most {
		t.Errorf("%d bytes were received", n)
	}
	if err := d.Ack(ctx); err != nil {
		t.Error(err)
	}
}

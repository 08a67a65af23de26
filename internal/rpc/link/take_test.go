package link_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// taken are the data of elements.
func taken(elements []recipes.Element, err error) (data []string, _ error) {
	for _, e := range elements {
		data = append(data, string(e.Data))
	}
	return data, err
}

// filled is a queue with the elements one to three.
func filled(t *testing.T, s recipes.Recipes) recipes.Queue {
	t.Helper()
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	must.Get(q.PutMany(ctx(t), []byte("one"), []byte("two"), []byte("three")))(t)
	return q
}

// takes takes most elements, and checks them.
func takes(t *testing.T, q recipes.Consumer, most int, want ...string) {
	t.Helper()
	got, err := taken(q.TakeMany(ctx(t), most))
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("took %q, %v; want %q", got, err, want)
	}
}

// A plugin that detaches the session before it deletes anything has taken nothing. So the next one
// takes the elements.
func TestWhatAPluginHasNotTakenIsTakenByTheNext(t *testing.T) {
	t.Parallel()
	s, before, after, move := moving(t)
	q := filled(t, s)
	before.refuse("TakeElement", func() error { move(); return recipes.ErrSessionLost })
	takes(t, q, 2, "one", "two")
	if n := after.count("TakeElement"); n != 2 {
		t.Errorf("%d calls of the next plugin; want a search, and a call", n)
	}
	takes(t, q, 2, "three")
}

// The receipt of elements that may not have reached the host is not used for other elements: a
// plugin that dies after that would lose the first ones.
func TestAReceiptIsKeptUntilTheHostHasItsElements(t *testing.T) {
	t.Parallel()
	s, before, _, move := moving(t)
	q := filled(t, s)
	before.loseAnswer("TakeElement", func() {
		takes(t, q, 1, "two")
		must.Get(q.Put(ctx(t), []byte("four")))(t)
		move()
	})
	takes(t, q, 1, "one")
	takes(t, q, 3, "three", "four")
}

// The receipt is used again once the host has the elements, so a session that takes one element
// after the other has few.
func TestReceiptsAreUsedAgain(t *testing.T) {
	t.Parallel()
	s, _, _, _ := moving(t)
	q := filled(t, s)
	for _, want := range []string{"one", "two", "three"} {
		takes(t, q, 1, want)
	}
	if names := must.Get(s.Children(ctx(t), "/q/receipts"))(t); len(names) > 2 {
		t.Errorf("%d receipts: %q", len(names), names)
	}
}

// Without another plugin the elements are lost, and the error names them.
func TestTakeNamesTheElementThatIsLostWithItsPlugin(t *testing.T) {
	spy := newSpy()
	l := newLink(t, spy.option())
	s := l.open(t, 0)
	q := filled(t, s)
	spy.loseAnswer("TakeElement", func() { _ = l.wire.Close(); <-s.Done() })
	_, err := q.TakeMany(ctx(t), 2)
	matches(t, err, recipes.ErrUnknownOutcome, recipes.ErrPluginLost)
	if !strings.Contains(err.Error(), "queue-0000000001 and queue-0000000002") {
		t.Errorf("it does not name the elements: %v", err)
	}
}

// A wait whose context ends has taken nothing, even if the answer is late.
func TestAWaitThatEndsHasTakenNothing(t *testing.T) {
	s := newLink(t).open(t, 0)
	q := must.Get(s.Queue("/q", recipes.QueueConfig{}))(t)
	for _, end := range []func(context.Context) (context.Context, context.CancelFunc){
		func(c context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(c, 1) },
		func(c context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(c, 20e6) },
	} {
		c, cancel := end(ctx(t))
		_, err := q.TakeMany(c, 2)
		_, received := q.ReceiveMany(c, 2)
		cancel()
		for _, err := range []error{err, received} {
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrUnknownOutcome) {
				t.Error(err)
			}
		}
	}
}

// A host that does not get the answer, and stays with its plugin, gets no delivery. The plugin gives
// the elements back.
func TestDeliveriesWhoseAnswerIsLostAreGivenBack(t *testing.T) {
	spy := newSpy()
	q := filled(t, newLink(t, spy.option()).open(t, 0))
	spy.loseAnswer("ReceiveElements", func() {})
	if _, err := q.ReceiveMany(ctx(t), 2); err == nil || errors.Is(err, recipes.ErrUnknownOutcome) {
		t.Error(err)
	}
	var got int
	for got < 3 {
		all := must.Get(q.ReceiveMany(ctx(t), 3))(t) // waits until they are given back
		must.Do(t, q.AckMany(ctx(t), all...))
		got += len(all)
	}
}

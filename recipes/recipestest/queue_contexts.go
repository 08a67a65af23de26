package recipestest

import (
	"context"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueSubject is a queue with two elements, and a delivery of the first.
type queueSubject struct {
	end
	d recipes.Delivery
}

// queueContextTests tests every call of a queue and a delivery.
func queueContextTests(form queueForm) []test {
	return endingTests[queueSubject]{
		calls: []call[queueSubject]{
			{"Put", func(ctx context.Context, q queueSubject) error { return errOf(q.many(ctx, []byte("more"))) }},
			{"Take", func(ctx context.Context, q queueSubject) error { return errOf(q.Take(ctx)) }},
			{"Receive", func(ctx context.Context, q queueSubject) error { return errOf(q.Receive(ctx)) }},
			{"Peek", func(ctx context.Context, q queueSubject) error { return errOf(q.Peek(ctx)) }},
			{"Len", func(ctx context.Context, q queueSubject) error { return errOf(q.Len(ctx)) }},
			{"DeadLetters", func(ctx context.Context, q queueSubject) error { return errOf(q.DeadLetters(ctx)) }},
			{"Ack", func(ctx context.Context, q queueSubject) error { return q.d.Ack(ctx) }},
			{"Return", func(ctx context.Context, q queueSubject) error { return q.d.Return(ctx) }},
		},
		endings: []ending{unanswered, severed},
		begin: func(f *fixture) (recipes.Client, queueSubject) {
			e := form.end(f, f.open(), f.path("a"))
			e.put("one", "two")
			return e.s, queueSubject{e, e.receives("one", 1)}
		},
		outcome: func(f *fixture, e ending, name string, err error) {
			if e == severed && name != "Ack" && name != "Return" {
				f.unsent(err)
			}
		},
		// If a failed call kept a claim, its element could not be taken.
		recovers: func(f *fixture, _ recipes.Client, q queueSubject) {
			q.put("last")
			for {
				got := get(f, q.Take)
				if string(got.Data) == "last" {
					return
				}
			}
		},
	}.tests(form.name + "/")
}

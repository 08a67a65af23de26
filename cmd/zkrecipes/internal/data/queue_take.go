package data

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var queueTake = verb.Verb{
	Name: "queue take", Usage: "[flags] PATH", New: verb.New[queueTakeVerb],
	Synopsis: "Take the first element of a queue",
	Help: `Waits for an element in the queue at PATH, and writes its data to stdout. Then it
removes the element from the queue.

    zkrecipes queue take -timeout 30s /mail
    zkrecipes queue take -try -priorities /jobs

The data are written byte for byte; a terminal gets a line. With -newline a newline
follows, so that a shell can read elements line by line. The element is removed
after it was written. If zkrecipes is killed in between, or cannot write, the element
goes back to the queue: it may be delivered twice, but it is not lost.

With -dialect curator or kazoo it is the other way round: those who take from such a queue
see no claims. The element is removed first, and is lost if zkrecipes cannot write it.

` + verb.WaitHelp,
}

type queueTakeVerb struct {
	verb.Waiting
	consumer
	try     bool
	newline bool
}

func (v *queueTakeVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	v.consumer.Flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if the queue is empty")
	f.BoolVar(&v.newline, "newline", false, "write a newline after the data")
}

func (v *queueTakeVerb) Arguments(args []string) error {
	return cmp.Or(v.Check(v.try), v.consumer.Arguments(args))
}

func (v *queueTakeVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := verb.Patience{Timeout: v.Timeout, Try: v.try, Failure: "nothing was taken from " + v.Path}
	if v.dialect.Other() { // others see no claims there
		return verb.WaitFor(ctx, t, p, takeWith(v, recipes.Consumer.Take), func(e recipes.Element) error { return v.write(t, e) })
	}
	return verb.WaitFor(ctx, t, p, takeWith(v, recipes.Consumer.Receive), func(d recipes.Delivery) error { return v.handOver(d, t) })
}

// takeWith opens the queue and calls get, which may wait. With -try it fails where the
// queue is empty.
func takeWith[T any](v *queueTakeVerb, get func(recipes.Consumer, context.Context) (T, error)) func(context.Context, recipes.Client) (T, error) {
	return func(ctx context.Context, s recipes.Client) (got T, err error) {
		q, err := v.open(s)
		if err != nil {
			return got, err
		}
		if !v.try {
			got, err = get(q, ctx)
			return got, verb.Foreign(err)
		}
		// Another consumer may take the element that Peek has found. Then get would wait,
		// so its time is bounded, and the queue is read again.
		const patience = time.Second
		for {
			if _, err := q.Peek(ctx); errors.Is(err, recipes.ErrEmpty) {
				return got, exit.With(exit.Timeout, "the queue %s is empty", v.Path)
			} else if err != nil {
				return got, verb.Foreign(err)
			}
			short, cancel := context.WithTimeout(ctx, patience)
			got, err = get(q, short)
			cancel()
			if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrUnknownOutcome) {
				return got, verb.Foreign(err)
			}
		}
	}
}

// handOver writes an element, and acknowledges it if it could be written. The
// time for taking, and a signal, no longer matter.
func (v *queueTakeVerb) handOver(d recipes.Delivery, t *verb.Tool) error {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := v.write(t, d.Element()); err != nil {
		if back := d.Return(ctx); back != nil {
			return exit.With(exit.Failed, "%w; element %s goes back when the session has ended: %w", err, d.Element().ID, back)
		}
		return exit.With(exit.Failed, "%w; element %s has gone back", err, d.Element().ID)
	}
	if err := d.Ack(ctx); err != nil {
		return exit.With(exit.Unknown, "element %s was written, but it may still be in the queue and be delivered again: %w", d.Element().ID, err)
	}
	return nil
}

// write writes the data of an element, all of it or none.
func (v *queueTakeVerb) write(t *verb.Tool, e recipes.Element) error {
	if v.newline && !t.JSON {
		return t.Write(append(bytes.Clone(e.Data), '\n'))
	}
	return showElement(t, e)
}

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
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var queuePeek = verb.Verb{
	Name: "queue peek", Usage: "[flags] PATH", New: verb.New[queuePeekVerb],
	Synopsis: "Show the first element of a queue, and leave it there",
	Help: `Writes the data of the first unclaimed element of the queue at PATH to stdout. The
element remains in the queue.

    zkrecipes queue peek /mail
    zkrecipes queue peek -priorities -format=json /jobs

The data is written byte for byte; a terminal gets control characters as escapes, and a
newline. Another consumer may
have taken the element when you read it. If the queue is empty, the exit code is 3.

` + verb.OnceCodes,
}

type queuePeekVerb struct{ consumer }

func (v *queuePeekVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, func(q recipes.Consumer, ctx context.Context) (recipes.Element, error) {
		e, err := q.Peek(ctx)
		if errors.Is(err, recipes.ErrEmpty) {
			err = exit.With(exit.Absent, "the queue %s is empty", v.Path)
		}
		return e, err
	}, func(e recipes.Element) error { return showElement(t, e) })
}

var queueLen = verb.Verb{
	Name: "queue len", Usage: "[flags] PATH", New: verb.New[queueLenVerb],
	Synopsis: "Count the elements of a queue",
	Help: `Shows how many elements are in the queue at PATH. It counts elements that a consumer
has claimed and not yet acknowledged.

    zkrecipes queue len /mail
    zkrecipes queue len -priorities /jobs

A queue that does not exist is empty.

` + verb.OnceCodes,
}

type queueLenVerb struct{ consumer }

func (v *queueLenVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Consumer.Len, func(n int) error { return t.Say(verb.Object{"path", v.Path, "len", n}, n) })
}

var queueDead = verb.Verb{
	Name: "queue dead", Usage: "[flags] PATH", New: verb.New[queueDeadVerb],
	Synopsis: "Show the dead letters of a queue",
	Help: `Shows the dead letters of the queue at PATH: elements that zkrecipes queue work
-max-deliveries has given up. They remain until their znodes are deleted.

    zkrecipes queue dead /mail
    zkrecipes queue dead -priorities -format=json /jobs

The znode of a dead letter has the element's name, below PATH/dead.

` + verb.OnceCodes,
}

type queueDeadVerb struct{ consumer }

// Flags defines no -dialect, because only a queue with claims has dead letters.
func (v *queueDeadVerb) Flags(f *flag.FlagSet) { v.priorities.Flag(f) }

func (v *queueDeadVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, v.open, recipes.Consumer.DeadLetters, func(dead []recipes.Element) error {
		if len(dead) == 0 {
			t.None("the queue %s has no dead letters", v.Path)
		}
		return t.Result(verb.Object{"path", v.Path, "dead", verb.List(dead, verb.ElementInJSON)}, verb.Table("ELEMENT\tPUT\tDATA", dead, func(e recipes.Element) []string {
			return []string{string(e.ID), e.Put.UTC().Format(time.RFC3339), verb.Printable(e.Data)}
		}))
	})
}

// consumer is embedded by the verbs that read a queue or take from it.
type consumer struct {
	pathAndDialect
	priorities verb.Priorities
}

func (c *consumer) Flags(f *flag.FlagSet) {
	c.priorities.Flag(f)
	verb.DialectFlag(f, &c.dialect)
}

func (c *consumer) open(s recipes.Client) (recipes.Consumer, error) {
	return c.priorities.Open(s, c.Path, recipes.QueueConfig{Dialect: c.dialect})
}

func showElement(t *verb.Tool, e recipes.Element) error {
	if len(e.Data) == 0 {
		t.None("the data of element %s is empty", e.ID)
	}
	return t.Stored(verb.ElementInJSON(e), e.Data)
}

var queueTake = verb.Verb{
	Name: "queue take", Usage: "[flags] PATH", New: verb.New[queueTakeVerb],
	Synopsis: "Take the first element of a queue",
	Help: `Waits for an element in the queue at PATH, and writes its data to stdout. Then it
removes the element.

    zkrecipes queue take -timeout 30s /mail
    zkrecipes queue take -try -priorities /jobs

The data is written byte for byte; a terminal gets control characters as escapes, and a
newline. With -newline a
newline always follows, so that a shell can read elements line by line. If zkrecipes is
killed before it has removed the element, or cannot write it, the element goes back to
the queue: it may be delivered twice, but it is not lost.

With -dialect curator or kazoo the order is reversed, because other consumers of such a
queue ignore claims. zkrecipes removes the element first. It is lost if zkrecipes cannot
write it.

` + verb.WaitHelp,
}

type queueTakeVerb struct {
	verb.Waiting
	consumer
	newline bool
}

func (v *queueTakeVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	v.consumer.Flags(f)
	v.TryFlag(f, "do not wait: exit with 124 if the queue is empty")
	f.BoolVar(&v.newline, "newline", false, helptext.Common("write a newline after the data"))
}

func (v *queueTakeVerb) Arguments(args []string) error {
	return cmp.Or(v.Check(), v.consumer.Arguments(args))
}

func (v *queueTakeVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := v.Patience("nothing was taken from " + v.Path)
	if verb.OtherLibrary(v.dialect) { // consumers of another library ignore claims
		return verb.WaitFor(ctx, t, p, takeWith(v, recipes.Consumer.Take), func(e recipes.Element) error { return v.write(t, e) })
	}
	return verb.WaitFor(ctx, t, p, takeWith(v, recipes.Consumer.Receive), func(d recipes.Delivery) error { return v.handOver(d, t) })
}

// takeWith returns a function that opens the queue and calls get, which may wait. With -try
// the function fails if the queue is empty.
func takeWith[T any](v *queueTakeVerb, get func(recipes.Consumer, context.Context) (T, error)) func(context.Context, recipes.Client) (T, error) {
	return func(ctx context.Context, s recipes.Client) (got T, err error) {
		q, err := v.open(s)
		if err != nil {
			return got, err
		}
		if !v.Try {
			got, err = get(q, ctx)
			return got, verb.Foreign(err)
		}
		// Another consumer may take the element that Peek has found, and get would wait. So
		// get has a short timeout, and then the queue is read again.
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

// handOver writes an element, and acknowledges it if the write succeeded. Neither -timeout
// nor a signal ends it.
func (v *queueTakeVerb) handOver(d recipes.Delivery, t *verb.Tool) error {
	ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
	defer cancel()
	if err := v.write(t, d.Element()); err != nil {
		if back := d.Return(ctx); back != nil {
			return exit.With(exit.Failed, "%w; element %s goes back to the queue when the session ends: %w", err, d.Element().ID, back)
		}
		return exit.With(exit.Failed, "%w; element %s was given back to the queue", err, d.Element().ID)
	}
	if err := d.Ack(ctx); err != nil {
		return exit.With(exit.Unknown, "element %s was written, but it may still be in the queue and be delivered again: %w", d.Element().ID, err)
	}
	return nil
}

// write writes the data of an element to stdout.
func (v *queueTakeVerb) write(t *verb.Tool, e recipes.Element) error {
	if v.newline && !t.JSON {
		return t.Stored(nil, append(bytes.Clone(e.Data), '\n'))
	}
	return showElement(t, e)
}

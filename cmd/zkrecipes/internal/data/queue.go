package data

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var queuePeek = verb.Verb{
	Name: "queue peek", Usage: "[flags] PATH", New: verb.New[queuePeekVerb],
	Synopsis: "Show the first element of a queue, and leave it there",
	Help: `Writes the data of the first unclaimed element of the queue at PATH to stdout. The
element remains in the queue.

    zkrecipes queue peek /mail
    zkrecipes queue peek -priorities -format=json /jobs

The data is written byte for byte; a terminal also gets a newline. Another consumer may
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
		return t.Result(verb.Object{"path", v.Path, "dead", verb.List(dead, inElementJSON)}, verb.Table("ELEMENT\tPUT\tDATA", dead, func(e recipes.Element) string {
			return fmt.Sprintf("%s\t%s\t%s", e.ID, e.Put.UTC().Format(time.RFC3339), verb.Printable(e.Data))
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

// elementJSON is an element of a queue in JSON.
type elementJSON struct {
	ID       recipes.ElementID `json:"id"`
	Priority int               `json:"priority"` // 0 in a queue without priorities
	Put      time.Time         `json:"put"`
	verb.Data
}

func inElementJSON(e recipes.Element) elementJSON {
	return elementJSON{e.ID, e.Priority, e.Put.UTC(), verb.InJSON(e.Data)}
}

func showElement(t *verb.Tool, e recipes.Element) error {
	if len(e.Data) == 0 {
		t.None("the data of element %s is empty", e.ID)
	}
	return t.Stored(inElementJSON(e), e.Data)
}

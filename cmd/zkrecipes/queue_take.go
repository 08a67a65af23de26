package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queueTakeVerb takes the first element of a queue.
type queueTakeVerb struct {
	waiting
	consumer
	try     bool
	newline bool
}

func (v *queueTakeVerb) describe() doc {
	return doc{
		usage:    "queue take [flags] PATH",
		synopsis: "Take the first element of a queue",
		about: `
Waits for an element in the queue at PATH, and writes its data to stdout. Then it
removes the element from the queue.
`,
		examples: [2]string{
			"zkrecipes queue take -timeout 30s /mail",
			"zkrecipes queue take -try -priorities /jobs",
		},
		rules: `
The data are written byte for byte; a terminal gets a line. With -newline a newline
follows, so that a shell can read elements line by line. The element is removed
after it was written. If zkrecipes is killed in between, or cannot write, the element
goes back to the queue: it may be delivered twice, but it is not lost.

With -dialect curator or kazoo it is the other way round: those who take from such a queue
see no claims. The element is removed first, and is lost if zkrecipes cannot write it.

` + waitHelp,
	}
}

func (v *queueTakeVerb) flags(f *flag.FlagSet) {
	v.waiting.flags(f)
	v.consumer.flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if the queue is empty")
	f.BoolVar(&v.newline, "newline", false, "write a newline after the data")
}

func (v *queueTakeVerb) arguments(args []string) error {
	if err := v.check(v.try); err != nil {
		return err
	}
	return v.consumer.arguments(args)
}

func (v *queueTakeVerb) otherwise() int { return exitFailed }

func (v *queueTakeVerb) run(ctx context.Context, t *tool, out *output) error {
	p := patience{timeout: v.timeout, try: v.try, failure: "nothing was taken from " + v.path}
	if v.dialect.other() {
		return waitFor(ctx, t, out, p, v.take, func(e recipes.Element) error { return v.write(out, e) })
	}
	return waitFor(ctx, t, out, p, func(ctx context.Context, s recipes.Session) (recipes.Delivery, error) {
		q, err := v.open(s)
		if err != nil {
			return nil, err
		}
		return v.receive(ctx, q)
	}, func(d recipes.Delivery) error { return v.handOver(d, out) })
}

// take removes an element from a queue in which others see no claims.
func (v *queueTakeVerb) take(ctx context.Context, s recipes.Session) (recipes.Element, error) {
	q, err := v.open(s)
	if err != nil {
		return recipes.Element{}, err
	}
	e, err := unlessEmpty(ctx, v, q, q.Take)
	return e, foreign(err)
}

func (v *queueTakeVerb) receive(ctx context.Context, q recipes.Consumer) (recipes.Delivery, error) {
	d, err := unlessEmpty(ctx, v, q, q.Receive)
	return d, foreign(err)
}

// unlessEmpty calls get, which may wait. With -try it fails where the queue is empty.
func unlessEmpty[T any](ctx context.Context, v *queueTakeVerb, q recipes.Consumer, get func(context.Context) (T, error)) (T, error) {
	if !v.try {
		return get(ctx)
	}
	var none T
	// Somebody else may take what Peek has seen, and then get would wait. It
	// is not let wait for long, and the queue is looked at again.
	const patience = time.Second
	for {
		if _, err := q.Peek(ctx); errors.Is(err, recipes.ErrEmpty) {
			return none, exitWith(exitTimeout, "the queue %s is empty", v.path)
		} else if err != nil {
			return none, err
		}
		short, cancel := context.WithTimeout(ctx, patience)
		got, err := get(short)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrUnknownOutcome) {
			return got, err
		}
	}
}

// handOver writes an element, and acknowledges it if it could be written. The
// time for taking, and a signal, no longer matter.
func (v *queueTakeVerb) handOver(d recipes.Delivery, out *output) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := v.write(out, d.Element()); err != nil {
		if back := d.Return(ctx); back != nil {
			return exitWith(exitFailed, "%w; element %s goes back when the session has ended: %w", err, d.Element().ID, back)
		}
		return exitWith(exitFailed, "%w; element %s has gone back", err, d.Element().ID)
	}
	if err := d.Ack(ctx); err != nil {
		return exitError{exitUnknown, fmt.Errorf("element %s was written, but it may still be in the queue and be delivered again: %w", d.Element().ID, err)}
	}
	return nil
}

// write writes the data of an element, all of it or none.
func (v *queueTakeVerb) write(out *output, e recipes.Element) error {
	if v.newline && !out.json {
		return out.write(append(bytes.Clone(e.Data), '\n'))
	}
	return out.element(e)
}

// consumer is what the verbs have in common that look at a queue.
type consumer struct {
	onePath
	priorities bool
	dialect    dialect
}

const prioritiesUsage = "PATH is a priority queue, whose elements were put with -priority"

func (c *consumer) flags(f *flag.FlagSet) {
	f.BoolVar(&c.priorities, "priorities", false, prioritiesUsage)
	f.Var(&c.dialect, "dialect", dialectUsage)
}

func (c *consumer) open(s recipes.Session) (recipes.Consumer, error) {
	return openQueue(s, c.path, c.priorities, recipes.QueueConfig{Dialect: recipes.Dialect(c.dialect)})
}

func openQueue(s recipes.Session, path string, priorities bool, cfg recipes.QueueConfig) (recipes.Consumer, error) {
	if priorities {
		return s.PriorityQueue(path, cfg)
	}
	return s.Queue(path, cfg)
}

// elementJSON is an element of a queue.
type elementJSON struct {
	ID         recipes.ElementID `json:"id"`
	Priority   int               `json:"priority"` // 0 in a queue without priorities
	Put        time.Time         `json:"put"`
	Data       string            `json:"data"`
	DataBase64 []byte            `json:"data_base64,omitempty"` // instead, if it is not UTF-8
}

func (o *output) element(e recipes.Element) error {
	if len(e.Data) == 0 {
		o.none("the data of element %s are empty", e.ID)
	}
	return o.stored(inElementJSON(e), e.Data)
}

func inElementJSON(e recipes.Element) elementJSON {
	j := elementJSON{ID: e.ID, Priority: e.Priority, Put: e.Put.UTC()}
	j.Data, j.DataBase64 = inJSON(e.Data)
	return j
}

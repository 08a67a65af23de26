package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queuePeekVerb shows the first element of a queue.
type queuePeekVerb struct{ consumer }

func (v *queuePeekVerb) describe() (arguments, synopsis, help string) {
	return "queue peek [flags] PATH", "Show the first element of a queue, and leave it there", `
Writes the data of the first element that nobody has claimed to stdout, byte for
byte (a terminal gets a line), and leaves it where it is. Somebody may have taken
it when you see it. If the queue is empty the exit code is 3.

` + onceCodes
}

func (v *queuePeekVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		q, err := v.open(s)
		if err != nil {
			return err
		}
		e, err := q.Peek(ctx)
		if errors.Is(err, recipes.ErrEmpty) {
			return exitWith(exitAbsent, "the queue %s is empty", v.path)
		}
		if err != nil {
			return err
		}
		return out.element(e)
	})
}

// queueLenVerb counts the elements of a queue.
type queueLenVerb struct{ consumer }

func (v *queueLenVerb) describe() (arguments, synopsis, help string) {
	return "queue len [flags] PATH", "Count the elements of a queue", `
Shows how many elements are in the queue at PATH, those included that somebody has
claimed and not yet acknowledged. A queue that does not exist is empty.

` + onceCodes
}

func (v *queueLenVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		q, err := v.open(s)
		if err != nil {
			return err
		}
		n, err := q.Len(ctx)
		if err != nil {
			return err
		}
		return out.result(struct {
			Path string `json:"path"`
			Len  int    `json:"len"`
		}{v.path, n}, func(w io.Writer) { fmt.Fprintln(w, n) })
	})
}

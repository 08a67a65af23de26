package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queuePeekVerb shows the first element of a queue.
type queuePeekVerb struct{ consumer }

func (v *queuePeekVerb) describe() doc {
	return doc{
		usage:    "queue peek [flags] PATH",
		synopsis: "Show the first element of a queue, and leave it there",
		about: `
Writes the data of the first unclaimed element of the queue at PATH to stdout. The
element stays in the queue.
`,
		examples: [2]string{
			"zkrecipes queue peek /mail",
			"zkrecipes queue peek -priorities -format=json /jobs",
		},
		rules: `
The data are written byte for byte; a terminal gets a line. Another consumer may have
taken the element when you read it. If the queue is empty, the exit code is 3.

` + onceCodes,
	}
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
			return foreign(err)
		}
		return out.element(e)
	})
}

// queueLenVerb counts the elements of a queue.
type queueLenVerb struct{ consumer }

func (v *queueLenVerb) describe() doc {
	return doc{
		usage:    "queue len [flags] PATH",
		synopsis: "Count the elements of a queue",
		about: `
Shows how many elements are in the queue at PATH. It counts elements that a consumer
has claimed and not yet acknowledged.
`,
		examples: [2]string{
			"zkrecipes queue len /mail",
			"zkrecipes queue len -priorities /jobs",
		},
		rules: `
A queue that does not exist is empty.

` + onceCodes,
	}
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

// queueDeadVerb shows the dead letters of a queue.
type queueDeadVerb struct{ consumer }

func (v *queueDeadVerb) describe() doc {
	return doc{
		usage:    "queue dead [flags] PATH",
		synopsis: "Show the elements that were given up",
		about: `
Shows the dead letters of the queue at PATH: elements that zkrecipes queue work
-max-deliveries has given up. They stay until somebody deletes their znodes.
`,
		examples: [2]string{
			"zkrecipes queue dead /mail",
			"zkrecipes queue dead -priorities -format=json /jobs",
		},
		rules: `
A dead letter is the znode of its name below PATH/dead.

` + onceCodes,
	}
}

// flags has no dialect: only a queue with claims has dead letters.
func (v *queueDeadVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.priorities, "priorities", false, prioritiesUsage)
}

func (v *queueDeadVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		q, err := v.open(s)
		if err != nil {
			return err
		}
		dead, err := q.DeadLetters(ctx)
		if err != nil {
			return err
		}
		list := []elementJSON{}
		for _, e := range dead {
			list = append(list, inElementJSON(e))
		}
		if len(dead) == 0 {
			out.none("the queue %s has no dead letters", v.path)
		}
		return out.result(struct {
			Path string        `json:"path"`
			Dead []elementJSON `json:"dead"`
		}{v.path, list}, func(w io.Writer) { v.table(w, dead) })
	})
}

func (v *queueDeadVerb) table(out io.Writer, dead []recipes.Element) {
	if len(dead) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ELEMENT\tPUT\tDATA")
	for _, e := range dead {
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.ID, e.Put.UTC().Format(time.RFC3339), printable(e.Data))
	}
	_ = w.Flush()
}

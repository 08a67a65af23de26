package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queuePutVerb puts elements into a queue.
type queuePutVerb struct {
	priority priority
	path     string
	data     []string
}

func (v *queuePutVerb) describe() (arguments, synopsis, help string) {
	return "queue put [flags] PATH DATA...|-", "Put elements into a queue", `
Appends elements to the queue at PATH and shows their names. Each DATA is an
element; several are put all or none, next to each other. "-" takes one element
from stdin, to the last byte.

With -priority PATH is a priority queue: lower numbers are taken first. It and a
queue without priorities do not see each other's elements, also at the same PATH.

The queue is not bounded: a capacity that other programs keep to is not known to
ZooKeeper, and nobody waits for it here.

` + askHelp
}

func (v *queuePutVerb) flags(f *flag.FlagSet) {
	f.Var(&v.priority, "priority", "put into a priority queue, with this `priority` from 0, the first, to 99")
}

func (v *queuePutVerb) arguments(args []string) error {
	if len(args) < 2 {
		return errors.New(`give PATH, and data or "-" for stdin, after the flags`)
	}
	v.path, v.data = args[0], args[1:]
	if len(v.data) > 1 && slices.Contains(v.data, "-") {
		return errors.New(`"-" takes one element from stdin, and stands alone`)
	}
	return recipes.ValidatePath(v.path)
}

func (v *queuePutVerb) otherwise() int { return exitFailed }

func (v *queuePutVerb) run(ctx context.Context, t *tool, out *output) error {
	data := make([][]byte, len(v.data))
	for i, d := range v.data {
		data[i] = []byte(d)
	}
	if len(v.data) == 1 && v.data[0] == "-" {
		var err error
		if data[0], err = readAll(os.Stdin); err != nil { // before a session waits for it
			return err
		}
	}
	return t.ask(ctx, out, func(ctx context.Context, s recipes.Session) error {
		ids, err := v.put(ctx, s, data)
		if err != nil {
			return err
		}
		return out.result(struct {
			Path string              `json:"path"`
			IDs  []recipes.ElementID `json:"ids"`
		}{v.path, ids}, func(w io.Writer) {
			for _, id := range ids {
				fmt.Fprintln(w, id)
			}
		})
	})
}

func (v *queuePutVerb) put(ctx context.Context, s recipes.Session, data [][]byte) ([]recipes.ElementID, error) {
	if v.priority.given {
		q, err := s.PriorityQueue(v.path, recipes.QueueConfig{})
		if err != nil {
			return nil, err
		}
		return q.PutMany(ctx, v.priority.number, data...)
	}
	q, err := s.Queue(v.path, recipes.QueueConfig{})
	if err != nil {
		return nil, err
	}
	return q.PutMany(ctx, data...)
}

// priority is a number that may not be given at all. It is a flag.Value.
type priority struct {
	given  bool
	number int
}

func (p *priority) String() string { return "" }

func (p *priority) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > recipes.MaxPriority {
		return fmt.Errorf("a priority is a number from 0 to %d", recipes.MaxPriority)
	}
	p.given, p.number = true, n
	return nil
}

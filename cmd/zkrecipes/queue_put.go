package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// queuePutVerb puts elements into a queue.
type queuePutVerb struct {
	exitCodeOnly
	waiting
	priority priority
	capacity int
	dialect  dialect
	path     string
	data     []string
	stdin    bool // the data are there
}

func (v *queuePutVerb) describe() doc {
	return doc{
		usage:    "queue put [flags] PATH [--] DATA...|-",
		synopsis: "Put elements into a queue",
		about: `
Appends elements to the queue at PATH, and shows their names. Each DATA is one
element, and "-" takes one element from stdin.
`,
		examples: [2]string{
			"zkrecipes queue put /mail 'to alice' 'to bob'",
			"zkrecipes queue put -priority 5 /jobs -- -v",
		},
		rules: `
Several elements are put all or none, next to each other. stdin is read to its last
byte. What follows "--" is data, whatever it looks like.

With -priority, PATH is a priority queue: lower numbers are taken first. A priority
queue and a queue do not see each other's elements, even at the same PATH.

With -capacity, zkrecipes waits while the queue has no room for all the elements. It
counts elements that a consumer has claimed and not yet acknowledged. ZooKeeper does
not know the number: all producers must give the same, and a producer that gives none
does not wait.

-dialect curator puts for Curator's SimpleDistributedQueue, -dialect kazoo for kazoo's
Queue, without -priority with its default, 100. Without -dialect zkrecipes gives up where
it finds elements of theirs.

A signal ends the wait with exit code 128+n, and nothing is put. If it comes while the
elements are being put, the exit code is 6.

` + waitCodes,
	}
}

func (v *queuePutVerb) flags(f *flag.FlagSet) {
	v.waiting.flags(f)
	f.Var(&v.dialect, "dialect", dialectUsage)
	f.Var(&v.priority, "priority", "put into a priority queue, with this `priority` from 0, the first, to 99")
	f.IntVar(&v.capacity, "capacity", 0, "wait while the queue has no room for more than this `number` of elements; 0 is\nno bound")
}

func (v *queuePutVerb) arguments(args []string) error {
	if len(args) < 2 {
		return errors.New(`give PATH, and data or "-" for stdin, after the flags`)
	}
	v.path = args[0]
	if err := v.elements(args[1:]); err != nil {
		return err
	}
	if err := v.check(false); err != nil {
		return err
	}
	switch err := v.config().Validate(); {
	case err != nil:
		return err
	case v.capacity > 0 && len(v.data) > v.capacity:
		return fmt.Errorf("a queue of -capacity %d has never room for %d elements at once", v.capacity, len(v.data))
	}
	return recipes.ValidatePath(v.path)
}

// elements takes the data. What could be a flag that came too late is not taken for
// data: it would be in the queue, and what it says not be done.
func (v *queuePutVerb) elements(args []string) error {
	if args[0] == "--" {
		if v.data = args[1:]; len(v.data) == 0 {
			return errors.New(`no data follow "--"`)
		}
		return nil
	}
	v.data, v.stdin = args, slices.Equal(args, []string{"-"})
	if !v.stdin && slices.Contains(args, "-") {
		return errors.New(`"-" takes one element from stdin, and stands alone`)
	}
	flags := (&command{verb: &queuePutVerb{}}).flagSet()
	for _, d := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(d, "-"), "-"), "=")
		if strings.HasPrefix(d, "-") && (flags.Lookup(name) != nil || name == "h" || name == "help") {
			return fmt.Errorf(`%s is a flag, and flags go before PATH; if it is data, give it after "--"`, d)
		}
	}
	return nil
}

func (v *queuePutVerb) config() recipes.QueueConfig {
	return recipes.QueueConfig{Capacity: v.capacity, Dialect: recipes.Dialect(v.dialect)}
}

func (v *queuePutVerb) otherwise() int { return exitFailed }

func (v *queuePutVerb) run(ctx context.Context, t *tool, out *output) error {
	data := make([][]byte, len(v.data))
	for i, d := range v.data {
		data[i] = []byte(d)
	}
	if v.stdin {
		var err error
		if data[0], err = readAll(os.Stdin); err != nil { // before a session waits for it
			return err
		}
	}
	return v.waiting.run(ctx, t, out, false, v.failure(), func(ctx context.Context, s recipes.Session) error {
		ids, err := v.put(ctx, s, data)
		if err != nil {
			return foreign(err)
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

// failure says that nothing was put.
func (v *queuePutVerb) failure() string {
	if v.capacity > 0 {
		return fmt.Sprintf("nothing was put into %s, which had no room", v.path)
	}
	return "nothing was put into " + v.path
}

func (v *queuePutVerb) put(ctx context.Context, s recipes.Session, data [][]byte) ([]recipes.ElementID, error) {
	if v.priority.given {
		q, err := s.PriorityQueue(v.path, v.config())
		if err != nil {
			return nil, err
		}
		return q.PutMany(ctx, v.priority.number, data...)
	}
	q, err := s.Queue(v.path, v.config())
	if err != nil {
		return nil, err
	}
	return q.PutMany(ctx, data...)
}

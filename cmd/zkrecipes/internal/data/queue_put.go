package data

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var queuePut = verb.Verb{
	Name: "queue put", Usage: "[flags] PATH [--] DATA...|-", New: verb.New[queuePutVerb], ExitCodeOnly: true,
	Synopsis: "Put elements into a queue",
	Help: `Appends elements to the queue at PATH, and shows their names. Each DATA is one
element, and "-" reads one element from stdin.

    zkrecipes queue put /mail 'to alice' 'to bob'
    zkrecipes queue put -priority 5 /jobs -- -v

Either all elements are put, next to each other, or none. stdin is read to its last byte.
Each argument after "--" is data, even if it looks like a flag.

With -priority, PATH is a priority queue: lower numbers are taken first. A priority
queue and a queue ignore each other's elements, even at the same PATH.

With -capacity, zkrecipes waits while the queue has no room for all the elements. It also
counts elements that a consumer has claimed and not yet acknowledged. ZooKeeper does not
store the number: all producers must give the same one. A producer without it does not
wait.

With -dialect curator the elements are for Curator's SimpleDistributedQueue, with
-dialect kazoo for kazoo's Queue. Without -priority they have kazoo's default priority,
100. Without -dialect, zkrecipes gives up if it finds elements of these libraries.

A signal ends the wait with exit code 128+n, and nothing is put. If the signal comes
while the elements are being put, the exit code is 6.

` + verb.WaitCodes,
}

type queuePutVerb struct {
	verb.Waiting
	priority verb.Priority
	capacity int
	dialect  recipes.Dialect
	path     string
	data     []string
	stdin    bool // read the data from stdin
}

func (v *queuePutVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	verb.DialectFlag(f, &v.dialect)
	v.priority.Flag(f, helptext.Common("put into a priority queue, with this `priority` from 0, the first, to 99"))
	f.IntVar(&v.capacity, "capacity", 0, helptext.Common("wait while the queue would exceed this `number` of elements; 0: no limit"))
}

func (v *queuePutVerb) Arguments(args []string) error {
	if len(args) < 2 {
		return errors.New(`give PATH, and data or "-" for stdin, after the flags`)
	}
	v.path = args[0]
	if err := v.elements(args[1:]); err != nil {
		return err
	}
	if err := v.config().Validate(); err != nil {
		return err
	}
	if v.capacity > 0 && len(v.data) > v.capacity {
		return fmt.Errorf("a queue of -capacity %d never has room for %s at once", v.capacity, english.Count(len(v.data), "element"))
	}
	return recipes.ValidatePath(v.path)
}

// elements takes the data. It refuses an argument that looks like a flag after PATH.
// Otherwise the flag would be put as an element and have no effect.
func (v *queuePutVerb) elements(args []string) error {
	if args[0] == "--" {
		if v.data = args[1:]; len(v.data) == 0 {
			return errors.New(`no data follow "--"`)
		}
		return nil
	}
	v.data, v.stdin = args, slices.Equal(args, []string{"-"})
	if !v.stdin && slices.Contains(args, "-") {
		return errors.New(`"-" reads one element from stdin: give no other data`)
	}
	flags := (&verb.Command{Action: &queuePutVerb{}}).FlagSet()
	for _, d := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(d, "-"), "-"), "=")
		if strings.HasPrefix(d, "-") && (flags.Lookup(name) != nil || name == "h" || name == "help") {
			return fmt.Errorf(`%s is a flag, and flags go before PATH; if it is data, give it after "--"`, d)
		}
	}
	return nil
}

func (v *queuePutVerb) config() recipes.QueueConfig {
	return recipes.QueueConfig{Capacity: v.capacity, Dialect: v.dialect}
}

func (v *queuePutVerb) Run(ctx context.Context, t *verb.Tool) error {
	data := verb.List(v.data, func(d string) []byte { return []byte(d) })
	if v.stdin {
		var err error
		if data[0], err = verb.Payload("-"); err != nil { // before a session is open
			return err
		}
	}
	p := v.Patience("nothing was put into " + v.path)
	if v.capacity > 0 {
		p.Failure += ", which had no room"
	}
	return verb.Wait(ctx, t, p, verb.Itself, func(ctx context.Context, s recipes.Client) error {
		ids, err := v.put(ctx, s, data)
		if err != nil {
			return verb.Foreign(err)
		}
		return t.Result(verb.Object{"path", v.path, "ids", ids}, verb.Table("", ids, func(id recipes.ElementID) []string { return []string{string(id)} }))
	})
}

func (v *queuePutVerb) put(ctx context.Context, s recipes.Recipes, data [][]byte) ([]recipes.ElementID, error) {
	if v.priority.Given {
		q, err := s.PriorityQueue(v.path, v.config())
		if err != nil {
			return nil, err
		}
		return q.PutMany(ctx, v.priority.Number, data...)
	}
	q, err := s.Queue(v.path, v.config())
	if err != nil {
		return nil, err
	}
	return q.PutMany(ctx, data...)
}

package data

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
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

func (v *queueTakeVerb) write(t *verb.Tool, e recipes.Element) error {
	if v.newline && !t.JSON {
		return t.Stored(nil, append(bytes.Clone(e.Data), '\n'))
	}
	return showElement(t, e)
}

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

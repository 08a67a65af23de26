package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var counterGet = verb.Verb{
	Name: "counter get", Usage: "[flags] PATH", New: verb.New[counterGetVerb],
	Synopsis: "Show the number of a counter",
	Help: `Shows the number of the counter at PATH. A counter that does not exist is 0.

    zkrecipes counter get /builds
    zkrecipes counter get -format=json /builds

The answer comes from one server, and may be outdated when you read it. For Curator's
DistributedAtomicLong, give -dialect curator. kazoo's Counter has the same format as ours.

` + verb.OnceCodes,
}

type counterGetVerb struct{ counter }

func (v *counterGetVerb) Run(ctx context.Context, t *verb.Tool) error {
	return number(ctx, t, v.Path, v.open, recipes.Counter.Get)
}

var counterAdd = verb.Verb{
	Name: "counter add", Usage: "[flags] PATH [[--] NUMBER]", New: verb.New[counterAddVerb], ExitCodeOnly: true,
	Synopsis: "Add to a counter, and show the sum",
	Help: `Adds NUMBER to the counter at PATH, and shows the sum. NUMBER is 1 by default, and may
be negative.

    zkrecipes counter add /builds
    zkrecipes counter add /seats -2

Each addition is counted once, even if replies are lost. A counter that does not exist
is created with 0. Use it for numbers that change a few times a second. With -dialect
curator, Curator's DistributedAtomicLong can use the same counter; with -dialect kazoo,
kazoo's Counter.

` + verb.OnceCodes,
}

type counterAddVerb struct {
	counter
	delta int64
}

func (v *counterAddVerb) Arguments(args []string) (err error) {
	v.delta = 1
	if len(args) > 1 && args[1] == "--" {
		args = slices.Delete(slices.Clone(args), 1, 2)
	}
	switch len(args) {
	case 1:
	case 2:
		if v.delta, err = strconv.ParseInt(args[1], 10, 64); err != nil {
			return fmt.Errorf("NUMBER %q is not a 64-bit integer", args[1])
		}
	default:
		return errors.New("give PATH, or PATH and NUMBER, after the flags")
	}
	return v.counter.Arguments(args[:1])
}

func (v *counterAddVerb) Run(ctx context.Context, t *verb.Tool) error {
	return number(ctx, t, v.Path, v.open, func(c recipes.Counter, ctx context.Context) (int64, error) { return c.Add(ctx, v.delta) })
}

type counter struct{ pathAndDialect }

func (c *counter) open(s recipes.Client) (recipes.Counter, error) {
	return s.Counter(c.Path, recipes.CounterConfig{Dialect: c.dialect})
}

type latch struct {
	verb.OnePath
	cfg recipes.LatchConfig
}

const latchHelp = `All clients must give the same COUNT; zkrecipes does not compare it. An open latch remains
in ZooKeeper, so use a separate PATH for each purpose, such as /migrations/7.

`

func (l *latch) Arguments(args []string) (err error) {
	if len(args) != 2 {
		return errors.New("give PATH and COUNT, after the flags")
	}
	if l.cfg.Count, err = strconv.ParseInt(args[1], 10, 64); err != nil {
		return fmt.Errorf("COUNT %q is not a number: it is how often the latch has to be counted down", args[1])
	}
	return cmp.Or(l.cfg.Validate(), l.OnePath.Arguments(args[:1]))
}

func (l *latch) open(s recipes.Client) (recipes.Latch, error) { return s.Latch(l.Path, l.cfg) }

var latchDown = verb.Verb{
	Name: "latch down", Usage: "[flags] PATH COUNT", New: verb.New[latchDownVerb], ExitCodeOnly: true,
	Synopsis: "Count a latch down by one",
	Help: `Counts the latch at PATH down by one, and shows the remaining count. Clients that wait
for the latch continue when it has been counted down COUNT times.

    zkrecipes latch down /migrations/7 3
    zkrecipes latch down -format=json /migrations/7 3

It counts down once, even if replies are lost. An open latch does not change.

` + latchHelp + verb.OnceCodes,
}

type latchDownVerb struct{ latch }

func (v *latchDownVerb) Run(ctx context.Context, t *verb.Tool) error {
	return number(ctx, t, v.Path, v.open, recipes.Latch.CountDown)
}

var latchCount = verb.Verb{
	Name: "latch count", Usage: "[flags] PATH COUNT", New: verb.New[latchCountVerb],
	Synopsis: "Show how often a latch still has to be counted down",
	Help: `Shows how often the latch at PATH still has to be counted down. For an open latch that
is 0.

    zkrecipes latch count /migrations/7 3
    zkrecipes latch count -format=json /migrations/7 3

Before the latch is counted down for the first time, that is COUNT.

` + latchHelp + verb.OnceCodes,
}

type latchCountVerb struct{ latch }

func (v *latchCountVerb) Run(ctx context.Context, t *verb.Tool) error {
	return number(ctx, t, v.Path, v.open, recipes.Latch.Count)
}

var latchWait = verb.Verb{
	Name: "latch wait", Usage: "[flags] PATH", New: verb.New[latchWaitVerb], ExitCodeOnly: true,
	Synopsis: "Wait until a latch is open",
	Help: `Waits until the latch at PATH has been counted down to 0. If the latch is open, it does
not wait.

    zkrecipes latch wait /migrations/7
    zkrecipes latch wait -timeout 10m /migrations/7

While no server answers, zkrecipes also waits, for -timeout at most. It replaces a session
that is lost. A signal ends the wait, with exit code 128+n, and leaves nothing behind.

Exit code: 0 if the latch is open. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    123  ZooKeeper refused the credentials
    124  the time limit has passed, although ZooKeeper answers`,
}

type latchWaitVerb struct {
	verb.Waiting
	verb.OnePath
}

func (v *latchWaitVerb) Flags(f *flag.FlagSet) { v.Waiting.Flags(f) }

func (v *latchWaitVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := v.Patience("the latch " + v.Path + " was not opened")
	l := latch{v.OnePath, recipes.LatchConfig{Count: 1}} // a wait does not depend on Count
	return verb.Wait(ctx, t, p, l.open, func(ctx context.Context, l recipes.Latch) error {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		return t.Done(verb.Object{"path", v.Path, "open", true})
	})
}

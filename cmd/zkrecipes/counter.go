package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// counterGetVerb shows a counter.
type counterGetVerb struct {
	onePath
	dialect dialect
}

func (v *counterGetVerb) flags(f *flag.FlagSet) { f.Var(&v.dialect, "dialect", dialectUsage) }

func (v *counterGetVerb) describe() doc {
	return doc{
		usage:    "counter get [flags] PATH",
		synopsis: "Show the number of a counter",
		about: `
Shows the number of the counter at PATH. A counter that does not exist is 0.
`,
		examples: [2]string{
			"zkrecipes counter get /builds",
			"zkrecipes counter get -format=json /builds",
		},
		rules: `
The answer is what one server knows, and may be outdated when you read it. Curator's
DistributedAtomicLong needs -dialect curator; kazoo's Counter has the same form as ours.

` + onceCodes,
	}
}

func (v *counterGetVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.count(ctx, out, v.path, v.dialect, recipes.Counter.Get)
}

// counterAddVerb adds to a counter.
type counterAddVerb struct {
	exitCodeOnly
	onePath
	dialect dialect
	delta   int64
}

func (v *counterAddVerb) flags(f *flag.FlagSet) { f.Var(&v.dialect, "dialect", dialectUsage) }

func (v *counterAddVerb) describe() doc {
	return doc{
		usage:    "counter add [flags] PATH [[--] NUMBER]",
		synopsis: "Add to a counter, and show the sum",
		about: `
Adds NUMBER to the counter at PATH, and shows the sum. NUMBER is 1 if it is left out, and
may be negative.
`,
		examples: [2]string{
			"zkrecipes counter add /builds",
			"zkrecipes counter add /seats -2",
		},
		rules: `
Each addition is counted once, also if answers are lost. A counter that does not exist
is made, and begins with 0. It is for numbers that change some times a second. -dialect
curator counts with Curator's DistributedAtomicLong, -dialect kazoo with kazoo's Counter.

` + onceCodes,
	}
}

func (v *counterAddVerb) arguments(args []string) (err error) {
	v.delta = 1
	if len(args) > 1 && args[1] == "--" {
		args = slices.Delete(slices.Clone(args), 1, 2)
	}
	switch len(args) {
	case 1:
	case 2:
		if v.delta, err = strconv.ParseInt(args[1], 10, 64); err != nil {
			return fmt.Errorf("NUMBER %q: it is a whole number of 64 bits", args[1])
		}
	default:
		return errors.New("give PATH and perhaps a NUMBER, after the flags")
	}
	return v.onePath.arguments(args[:1])
}

func (v *counterAddVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.count(ctx, out, v.path, v.dialect, func(c recipes.Counter, ctx context.Context) (int64, error) { return c.Add(ctx, v.delta) })
}

// count shows what f returns of the counter at path.
func (t *tool) count(ctx context.Context, out *output, path string, d dialect, f func(recipes.Counter, context.Context) (int64, error)) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		c, err := s.Counter(path, recipes.CounterConfig{Dialect: recipes.Dialect(d)})
		if err != nil {
			return err
		}
		n, err := f(c, ctx)
		if err != nil {
			return foreign(err)
		}
		return out.number(path, n)
	})
}

// number is the result of the verbs of counters and latches.
func (o *output) number(path string, n int64) error {
	return o.result(struct {
		Path   string `json:"path"`
		Number int64  `json:"number"`
	}{path, n}, func(w io.Writer) { fmt.Fprintln(w, n) })
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// latchPath is what the verbs have in common that have to know with which number a
// latch begins.
type latchPath struct {
	onePath
	cfg recipes.LatchConfig
}

const latchHelp = `All must give the same COUNT; zkrecipes does not compare it. ZooKeeper keeps a latch that
has served: use a PATH of its own for each purpose, such as /migrations/7.

`

func (l *latchPath) arguments(args []string) (err error) {
	if len(args) != 2 {
		return errors.New("give PATH and COUNT, after the flags")
	}
	if l.cfg.Count, err = strconv.ParseInt(args[1], 10, 64); err != nil {
		return fmt.Errorf("COUNT %q: it is how often the latch has to be counted down", args[1])
	}
	if err := l.cfg.Validate(); err != nil {
		return err
	}
	return l.onePath.arguments(args[:1])
}

// show shows what f returns of the latch.
func (l *latchPath) show(ctx context.Context, t *tool, out *output, f func(recipes.Latch, context.Context) (int64, error)) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		latch, err := s.Latch(l.path, l.cfg)
		if err != nil {
			return err
		}
		n, err := f(latch, ctx)
		if err != nil {
			return err
		}
		return out.number(l.path, n)
	})
}

// latchDownVerb counts a latch down.
type latchDownVerb struct {
	exitCodeOnly
	latchPath
}

func (v *latchDownVerb) describe() doc {
	return doc{
		usage:    "latch down [flags] PATH COUNT",
		synopsis: "Count a latch down by one",
		about: `
Counts the latch at PATH down by one, and shows what remains. Whoever waits for the latch
goes on when it has been counted down COUNT times.
`,
		examples: [2]string{
			"zkrecipes latch down /migrations/7 3",
			"zkrecipes latch down -format=json /migrations/7 3",
		},
		rules: `
It counts once, also if answers are lost. An open latch stays as it is.

` + latchHelp + onceCodes,
	}
}

func (v *latchDownVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.show(ctx, t, out, recipes.Latch.CountDown)
}

// latchCountVerb shows what remains of a latch.
type latchCountVerb struct{ latchPath }

func (v *latchCountVerb) describe() doc {
	return doc{
		usage:    "latch count [flags] PATH COUNT",
		synopsis: "Show how often a latch still has to be counted down",
		about: `
Shows how often the latch at PATH still has to be counted down. An open latch shows 0.
`,
		examples: [2]string{
			"zkrecipes latch count /migrations/7 3",
			"zkrecipes latch count -format=json /migrations/7 3",
		},
		rules: `
Before it is first counted down that is COUNT.

` + latchHelp + onceCodes,
	}
}

func (v *latchCountVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.show(ctx, t, out, recipes.Latch.Count)
}

// latchWaitVerb waits for a latch.
type latchWaitVerb struct {
	exitCodeOnly
	waiting
	onePath
}

func (v *latchWaitVerb) describe() doc {
	return doc{
		usage:    "latch wait [flags] PATH",
		synopsis: "Wait until a latch is open",
		about: `
Waits until the latch at PATH has been counted down to 0. If it has been, it does not wait.
`,
		examples: [2]string{
			"zkrecipes latch wait /migrations/7",
			"zkrecipes latch wait -timeout 10m /migrations/7",
		},
		rules: `
While no server answers, it waits too, for -timeout at most; a session that is lost is
replaced. A signal ends the wait, with exit code 128+n, and leaves nothing behind.

Exit code: 0 if the latch is open. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    123  ZooKeeper refused the credentials
    124  the time is over, and ZooKeeper answers`,
	}
}

func (v *latchWaitVerb) flags(f *flag.FlagSet) { v.waiting.flags(f) }

func (v *latchWaitVerb) arguments(args []string) error {
	if err := v.check(false); err != nil {
		return err
	}
	return v.onePath.arguments(args)
}

func (v *latchWaitVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.waiting.run(ctx, t, out, false, "the latch "+v.path+" was not opened", func(ctx context.Context, s recipes.Session) error {
		latch, err := s.Latch(v.path, recipes.LatchConfig{Count: 1}) // any number: waiting does not need it
		if err != nil {
			return err
		}
		if err := latch.Wait(ctx); err != nil {
			return err
		}
		return out.done(struct {
			Path string `json:"path"`
			Open bool   `json:"open"`
		}{v.path, true})
	})
}

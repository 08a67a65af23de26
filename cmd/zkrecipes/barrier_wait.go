package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierWaitVerb waits until a barrier is not set.
type barrierWaitVerb struct {
	exitCodeOnly
	waiting
	try  bool
	path string
}

func (v *barrierWaitVerb) describe() doc {
	return doc{
		usage:    "barrier wait [flags] PATH",
		synopsis: "Wait until a barrier is removed",
		about: `
Waits until no barrier is set at PATH. If none is set, it does not wait.
`,
		examples: [2]string{
			"zkrecipes barrier wait /releases/next",
			"zkrecipes barrier wait -timeout 10m /releases/next",
		},
		rules: `
With -try it only looks, and exits with 124 if the barrier is set.

` + waitHelp,
	}
}

func (v *barrierWaitVerb) flags(f *flag.FlagSet) {
	v.waiting.flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if the barrier is set")
}

func (v *barrierWaitVerb) arguments(args []string) (err error) {
	if err := v.check(v.try); err != nil {
		return err
	}
	v.path, err = barrierPath(args)
	return err
}

func (v *barrierWaitVerb) otherwise() int { return exitFailed }

func (v *barrierWaitVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.waiting.run(ctx, t, out, v.try, "the barrier "+v.path+" was not removed", func(ctx context.Context, s recipes.Session) error {
		b, err := s.Barrier(v.path)
		if err != nil {
			return err
		}
		if err := v.pass(ctx, b); err != nil {
			return err
		}
		return out.barrier(v.path, false)
	})
}

func (v *barrierWaitVerb) pass(ctx context.Context, b recipes.Barrier) error {
	if !v.try {
		return b.Wait(ctx)
	}
	set, err := b.IsSet(ctx)
	if err == nil && set {
		return exitWith(exitTimeout, "the barrier %s is set", v.path)
	}
	return err
}

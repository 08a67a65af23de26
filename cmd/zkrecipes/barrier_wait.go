package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierWaitVerb waits until a barrier is not in place.
type barrierWaitVerb struct {
	waiting
	try  bool
	path string
}

func (v *barrierWaitVerb) describe() (arguments, synopsis, help string) {
	return "barrier wait [flags] PATH", "Wait until a barrier is removed", `
Waits until no barrier is in place at PATH. If there is none, it does not wait:

    zkrecipes barrier wait /releases/next && ./start

With -try it only looks.

` + waitHelp
}

func (v *barrierWaitVerb) flags(f *flag.FlagSet) {
	v.waiting.flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if the barrier is in place")
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
	return v.waiting.run(ctx, t, out, "the barrier "+v.path+" was not removed", func(ctx context.Context, s recipes.Session) error {
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
	placed, err := b.IsSet(ctx)
	if err == nil && placed {
		return exitWith(exitTimeout, "the barrier %s is in place", v.path)
	}
	return err
}

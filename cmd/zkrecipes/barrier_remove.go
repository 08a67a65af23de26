package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierRemoveVerb takes a barrier away.
type barrierRemoveVerb struct{ path string }

func (v *barrierRemoveVerb) describe() (arguments, synopsis, help string) {
	return "barrier remove [flags] PATH", "Remove a barrier, so that all who wait at it go on", `
Removes the barrier at PATH: all who wait at it go on. If it is not in place, that
is no error.

` + onceCodes
}

func (v *barrierRemoveVerb) flags(*flag.FlagSet) {}

func (v *barrierRemoveVerb) arguments(args []string) (err error) {
	v.path, err = barrierPath(args)
	return err
}

func (v *barrierRemoveVerb) otherwise() int { return exitFailed }

func (v *barrierRemoveVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		b, err := s.Barrier(v.path)
		if err != nil {
			return err
		}
		if err := b.Remove(ctx); err != nil {
			return err
		}
		return out.barrier(v.path, false)
	})
}

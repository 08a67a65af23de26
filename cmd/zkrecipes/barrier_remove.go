package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// barrierRemoveVerb takes a barrier away.
type barrierRemoveVerb struct {
	exitCodeOnly
	path string
}

func (v *barrierRemoveVerb) describe() doc {
	return doc{
		usage:    "barrier remove [flags] PATH",
		synopsis: "Remove a barrier, so that all who wait at it go on",
		about: `
Removes the barrier at PATH. All who wait at it go on.
`,
		examples: [2]string{
			"zkrecipes barrier remove /releases/next",
			"zkrecipes barrier remove -format=json /releases/next",
		},
		rules: `
A barrier that is not set is no error.

` + onceCodes,
	}
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphoreVerb shows how many permits a semaphore has left. To take one is
// "lock -n", as in consul: a second verb that runs a command would do the same
// with another name.
type semaphoreVerb struct{ onePath }

func (v *semaphoreVerb) describe() doc {
	return doc{
		usage:    "semaphore [flags] PATH",
		synopsis: "Show how many permits of a semaphore are free",
		about: `
Shows how many permits the semaphore at PATH has: held, free and waited for. To take
a permit, run a command with zkrecipes lock -n.
`,
		examples: [2]string{
			"zkrecipes semaphore /render",
			"zkrecipes semaphore -format=json /render",
		},
		rules: `
zkrecipes contenders PATH shows who holds a permit, and who waits.

The first contender decides the number of permits. When no contender is in line, the
next one may give another number: zkrecipes then deletes PATH and makes it again.

` + onceCodes,
	}
}

func (v *semaphoreVerb) arguments(args []string) error {
	if len(args) > 1 && args[1] == "--" {
		return errors.New("semaphore runs no command: zkrecipes lock -n PERMITS PATH -- COMMAND does")
	}
	return v.onePath.arguments(args)
}

// permits is the state of a semaphore in JSON.
type permits struct {
	Path    string `json:"path"`
	Permits int    `json:"permits"`
	Held    int    `json:"held"`
	Free    int    `json:"free"`
	Waiting int    `json:"waiting"`
}

func (v *semaphoreVerb) run(ctx context.Context, t *tool, out *output) error {
	return t.once(ctx, out, func(ctx context.Context, s recipes.Session) error {
		lines, err := s.Contenders(ctx, v.path)
		if err != nil {
			return err
		}
		n, line := lines.Permits, lines.Of(recipes.KindSemaphore)
		if n == 0 {
			return exitWith(exitAbsent, "%s is not a semaphore: nobody has agreed on a number of permits there", v.path)
		}
		held := min(n, len(line))
		p := permits{v.path, n, held, n - held, len(line) - held}
		return out.result(p, func(w io.Writer) {
			fmt.Fprintf(w, "permits %d  held %d  free %d  waiting %d\n", p.Permits, p.Held, p.Free, p.Waiting)
		})
	})
}

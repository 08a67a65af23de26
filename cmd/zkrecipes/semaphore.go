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

func (v *semaphoreVerb) describe() (arguments, synopsis, help string) {
	return "semaphore [flags] PATH", "Show how many permits of a semaphore are free", `
Shows how many permits the semaphore at PATH has, how many are held and how many
are free, and how many wait for one. To run a command that holds a permit, use

    zkrecipes lock -n PERMITS PATH -- COMMAND

and to see who holds and who waits, zkrecipes contenders PATH. The number of
permits is agreed on by the first who comes, and forgotten some time after the
last has left, with PATH itself. Where PATH was made by something else and stays,
the number does, until somebody deletes PATH, or its data, while nobody is there.

` + onceCodes
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
		line, n, err := semaphoreLine(ctx, s, v.path)
		if err != nil {
			return err
		}
		if n == 0 {
			return exitWith(exitAbsent, "%s is no semaphore: nobody has agreed on a number of permits there", v.path)
		}
		held := min(n, len(line))
		p := permits{v.path, n, held, n - held, len(line) - held}
		return out.result(p, func(w io.Writer) {
			fmt.Fprintf(w, "permits %d  held %d  free %d  waiting %d\n", p.Permits, p.Held, p.Free, p.Waiting)
		})
	})
}

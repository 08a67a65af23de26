package look

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphore shows how many permits a semaphore has left. To take one is
// "lock -n", as in consul: a second verb that runs a command would do the same
// with another name.
var semaphore = verb.Verb{
	Name: "semaphore", Usage: "[flags] PATH", New: verb.New[semaphoreVerb],
	Synopsis: "Show how many permits of a semaphore are free",
	Help: `Shows how many permits the semaphore at PATH has: held, free and waited for. To take
a permit, run a command with zkrecipes lock -n.

    zkrecipes semaphore /render
    zkrecipes semaphore -format=json /render

zkrecipes contenders PATH shows who holds a permit, and who waits.

The first contender decides the number of permits. When no contender is in line, the
next one may give another number: zkrecipes then deletes PATH and makes it again.

` + verb.OnceCodes,
}

type semaphoreVerb struct{ verb.OnePath }

func (v *semaphoreVerb) Arguments(args []string) error {
	if len(args) > 1 && args[1] == "--" {
		return errors.New("semaphore runs no command: zkrecipes lock -n PERMITS PATH -- COMMAND does")
	}
	return v.OnePath.Arguments(args)
}

// permits is the state of a semaphore in JSON.
type permits struct {
	Path    string `json:"path"`
	Permits int    `json:"permits"`
	Held    int    `json:"held"`
	Free    int    `json:"free"`
	Waiting int    `json:"waiting"`
}

func (v *semaphoreVerb) Run(ctx context.Context, t *verb.Tool) error {
	return verb.Ask(ctx, t, verb.Itself, func(s recipes.Client, ctx context.Context) (recipes.Lines, error) {
		return s.Contenders(ctx, v.Path)
	}, func(lines recipes.Lines) error {
		n, line := lines.Permits, lines.Of(recipes.KindSemaphore)
		if n == 0 {
			return exit.With(exit.Absent, "%s is not a semaphore: it has no number of permits", v.Path)
		}
		held := min(n, len(line))
		p := permits{v.Path, n, held, n - held, len(line) - held}
		return t.Say(p, fmt.Sprintf("permits %d  held %d  free %d  waiting %d", p.Permits, p.Held, p.Free, p.Waiting))
	})
}

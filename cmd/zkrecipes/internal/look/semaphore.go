package look

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// semaphore only shows a semaphore. "lock -n" runs a command with a permit, as in consul. A verb
// for that here would only be a second name.
var semaphore = verb.Verb{
	Name: "semaphore", Usage: "[flags] PATH", New: verb.New[semaphoreVerb],
	Synopsis: "Show how many permits of a semaphore are free",
	Help: `Shows how many permits of the semaphore at PATH are held, free and waited for. To run a
command with a permit, use zkrecipes lock -n.

    zkrecipes semaphore /render
    zkrecipes semaphore -format=json /render

zkrecipes contenders PATH shows the holders and the waiters.

The first contender sets the number of permits. When there are no contenders, the next
one may give another number: zkrecipes then deletes PATH and creates it again.

` + verb.OnceCodes,
}

type semaphoreVerb struct{ verb.OnePath }

func (v *semaphoreVerb) Arguments(args []string) error {
	if len(args) > 1 && args[1] == "--" {
		return errors.New("semaphore runs no command: use zkrecipes lock -n PERMITS PATH -- COMMAND")
	}
	return v.OnePath.Arguments(args)
}

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

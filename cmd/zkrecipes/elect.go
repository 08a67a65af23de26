package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// electVerb runs a command while leading.
type electVerb struct{ guard }

func (v *electVerb) describe() doc {
	return doc{
		usage:    "elect [flags] PATH -- COMMAND [ARGUMENT...]",
		synopsis: "Run a command while being the leader",
		about: `
Campaigns for the leadership at PATH, and runs the command while it leads. It resigns
when the command has ended.
`,
		examples: [2]string{
			"zkrecipes elect /service/leader -- ./serve",
			"zkrecipes elect -data 10.0.0.5:8080 /service/leader -- ./serve -port 8080",
		},
		rules: `
Only one candidate leads at a time; the others wait in the order in which they came.
As soon as the command runs, zkrecipes acknowledges the leadership with -data.
zkrecipes contenders -election PATH shows the leader and the candidates.

` + guardHelp,
	}
}

func (v *electVerb) flags(f *flag.FlagSet) { v.guard.flags(f) }

func (v *electVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.guard.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		e, err := s.Election(v.path, recipes.ElectionConfig{})
		if err != nil {
			return grant{}, err
		}
		l, err := e.Campaign(ctx, []byte(v.data))
		if err != nil {
			return grant{}, err
		}
		return grant{Grant: l, giveBack: l.Resign, started: func(ctx context.Context) error {
			return l.Acknowledge(ctx, []byte(v.data))
		}}, nil
	})
}

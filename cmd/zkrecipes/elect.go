package main

import (
	"context"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// electVerb runs a command while leading.
type electVerb struct{ guard }

func (v *electVerb) describe() (arguments, synopsis, help string) {
	return "elect [flags] PATH -- COMMAND [ARGUMENT...]", "Run a command while being the leader", `
Stands for election at PATH, runs the command while elected, and resigns when
the command has ended. The leadership is acknowledged with -data as soon as the
command runs.

` + guardHelp
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

package main

import (
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// groupJoinVerb is a member of a group.
type groupJoinVerb struct {
	ephemeral
	name string
}

func (v *groupJoinVerb) describe() (arguments, synopsis, help string) {
	return "group join [flags] PATH [-- COMMAND [ARGUMENT...]]", "Be a member of a group, while a command runs", `
Joins the group at PATH, and is a member while the command runs or, without one,
until a signal comes; then the member's znode and its token are shown on stdout. A
member that dies has left when its session has timed out.

` + ephemeralHelp
}

func (v *groupJoinVerb) flags(f *flag.FlagSet) {
	v.ephemeral.flags(f)
	f.StringVar(&v.name, "name", "", "be called `name`, which two cannot be at a time; by default each member gets a\nname of its own")
}

func (v *groupJoinVerb) arguments(args []string) error {
	if _, err := v.ephemeral.arguments(args, 0); err != nil {
		return err
	}
	if v.name == "" {
		return nil
	}
	return recipes.ValidateName(v.name)
}

func (v *groupJoinVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.ephemeral.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		g, err := s.Group(v.path, recipes.GroupConfig{Name: v.name})
		if err != nil {
			return grant{}, err
		}
		m, err := g.Join(ctx, []byte(v.data))
		if err != nil {
			return grant{}, taken(err)
		}
		return grant{Grant: m, giveBack: m.Leave}, nil
	})
}

// taken gives the error that somebody has a name the exit code that it has in
// verbs with a command.
func taken(err error) error {
	if errors.Is(err, recipes.ErrNodeExists) {
		return exitError{exitTimeout, err}
	}
	return err
}

package run

import (
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var groupJoin = verb.Verb{
	Name: "group join", Usage: "[flags] PATH [-- COMMAND [ARGUMENT...]]", New: verb.New[groupJoinVerb], Otherwise: exit.Own,
	Synopsis: "Be a member of a group while a command runs",
	Help: `Joins the group at PATH, and remains a member while the command runs. Without a command
it remains a member until a signal arrives, and shows its znode and token on stdout.

    zkrecipes group join -name web1 -data 10.0.0.5:80 /web -- ./serve
    zkrecipes group join /web

A member that dies leaves the group when its session expires. Members with Curator's
GroupMember share the group. Members with kazoo's Party need -dialect kazoo here.

` + ephemeralHelp,
}

type groupJoinVerb struct {
	ephemeral
	name    string
	dialect recipes.Dialect
}

func (v *groupJoinVerb) Flags(f *flag.FlagSet) {
	v.ephemeral.Flags(f)
	f.StringVar(&v.name, "name", "", "the member's `name`, which only one member can have at a time; by default a new\nunique name")
	verb.DialectFlag(f, &v.dialect)
}

func (v *groupJoinVerb) Arguments(args []string) error {
	if _, err := v.ephemeral.arguments(args, 0); err != nil {
		return err
	}
	if v.name == "" {
		return nil
	}
	if v.dialect == recipes.Kazoo {
		return errors.New("-name needs another -dialect: kazoo's Party chooses the names of its members")
	}
	return recipes.ValidateName(v.name)
}

func (v *groupJoinVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.ephemeral.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
		g, err := s.Group(v.path, recipes.GroupConfig{Name: v.name, Dialect: v.dialect})
		if err != nil {
			return grant{}, err
		}
		return v.create(ctx, s, func() (grant, error) {
			m, err := g.Join(ctx, []byte(v.data))
			if err != nil {
				return grant{}, err
			}
			return grant{Grant: m, giveBack: m.Leave}, nil
		}, func() (znode string, session int64, err error) {
			members, err := g.Members(ctx)
			for _, m := range members {
				if m.Name == v.name {
					return m.Znode, m.SessionID, err
				}
			}
			return "", 0, err
		})
	})
}

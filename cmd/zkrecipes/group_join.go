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
	name    string
	dialect dialect
}

func (v *groupJoinVerb) describe() doc {
	return doc{
		usage:    "group join [flags] PATH [-- COMMAND [ARGUMENT...]]",
		synopsis: "Be a member of a group, while a command runs",
		about: `
Joins the group at PATH, and stays a member while the command runs. Without a command
it stays until a signal comes, and shows its znode and its token on stdout.
`,
		examples: [2]string{
			"zkrecipes group join -name web1 -data 10.0.0.5:80 /web -- ./serve",
			"zkrecipes group join /web",
		},
		rules: `
A member that dies leaves the group when its session times out. Members of Curator's
GroupMember share the group. Members of kazoo's Party see this one with -dialect kazoo.

` + ephemeralHelp,
	}
}

func (v *groupJoinVerb) flags(f *flag.FlagSet) {
	v.ephemeral.flags(f)
	f.StringVar(&v.name, "name", "", "the member's `name`, which only one member can have at a time; by default a new\nname for each")
	f.Var(&v.dialect, "dialect", dialectUsage)
}

func (v *groupJoinVerb) arguments(args []string) error {
	if _, err := v.ephemeral.arguments(args, 0); err != nil {
		return err
	}
	if v.name == "" {
		return nil
	}
	if v.dialect == dialect(recipes.Kazoo) {
		return errors.New("-name needs another -dialect: members of kazoo's Party have names of their own")
	}
	return recipes.ValidateName(v.name)
}

func (v *groupJoinVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.ephemeral.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		g, err := s.Group(v.path, recipes.GroupConfig{Name: v.name, Dialect: recipes.Dialect(v.dialect)})
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

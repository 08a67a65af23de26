package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// namesRegisterVerb takes a name.
type namesRegisterVerb struct {
	ephemeral
	name    string
	forGood bool
}

func (v *namesRegisterVerb) describe() doc {
	return doc{
		usage:    "names register [flags] PATH NAME [-- COMMAND [ARGUMENT...]]",
		synopsis: "Take a name, while a command runs or for good",
		about: `
Registers NAME in the directory at PATH while the command runs; nobody else has NAME
then. Without a command it keeps NAME until a signal comes, and shows its znode and its
token on stdout.
`,
		examples: [2]string{
			"zkrecipes names register -data 10.0.0.5:5432 /services db -- ./serve",
			"zkrecipes names register -persistent -data 10.0.0.5:5432 /services db",
		},
		rules: `
With -persistent the name stays until zkrecipes names unregister, and no command runs.
Then exit code 6 says that the answer was lost: the name may be registered or not.

` + ephemeralHelp,
	}
}

func (v *namesRegisterVerb) flags(f *flag.FlagSet) {
	v.ephemeral.flags(f)
	f.BoolVar(&v.forGood, "persistent", false, "keep the name after zkrecipes has ended; -data is then empty by default")
}

func (v *namesRegisterVerb) arguments(args []string) error {
	data := v.data
	rest, err := v.ephemeral.arguments(args, 1)
	if err != nil {
		return err
	}
	v.name = rest[0]
	if v.forGood {
		if v.argv != nil {
			return errors.New("-persistent runs no command: the name stays when zkrecipes has ended")
		}
		v.data = data
	}
	return recipes.ValidateName(v.name)
}

func (v *namesRegisterVerb) run(ctx context.Context, t *tool, out *output) error {
	if v.forGood {
		return v.persist(ctx, t, out)
	}
	return v.ephemeral.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		n, err := s.Names(v.path)
		if err != nil {
			return grant{}, err
		}
		return v.create(ctx, s, func() (grant, error) {
			r, err := n.Register(ctx, v.name, []byte(v.data))
			if err != nil {
				return grant{}, err
			}
			return grant{Grant: r, giveBack: r.Unregister}, nil
		}, func() (znode string, session int64, err error) {
			r, err := n.Lookup(ctx, v.name)
			return r.Znode, r.SessionID, err
		})
	})
}

func (v *namesRegisterVerb) persist(ctx context.Context, t *tool, out *output) error {
	return waitFor(ctx, t, out, v.patience(), func(ctx context.Context, s recipes.Session) (recipes.Names, error) {
		n, err := s.Names(v.path)
		if err != nil {
			return nil, err
		}
		err = n.RegisterPersistent(ctx, v.name, []byte(v.data))
		if errors.Is(err, recipes.ErrNodeExists) {
			err = exitError{exitTimeout, err}
		}
		return n, err
	}, func(n recipes.Names) error {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		r, err := n.Lookup(ctx, v.name)
		if errors.Is(err, recipes.ErrNoNode) {
			err = fmt.Errorf("%w: it was registered, and somebody has unregistered it at once", recipes.ErrNoNode)
		}
		if err != nil {
			return err
		}
		return out.line(ephemeralJSON{v.path, r.Znode, int64(r.Token)}, fmt.Sprintf("%s %d", r.Znode, r.Token))
	})
}

package run

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var namesRegister = verb.Verb{
	Name: "names register", Usage: "[flags] PATH NAME [-- COMMAND [ARGUMENT...]]", New: verb.New[namesRegisterVerb], Otherwise: exit.Own,
	Synopsis: "Register a name, while a command runs or for good",
	Help: `Registers NAME in the directory at PATH while the command runs; no other client can
register NAME then. Without a command it keeps NAME until a signal arrives, and shows
its znode and token on stdout.

    zkrecipes names register -data 10.0.0.5:5432 /services db -- ./serve
    zkrecipes names register -persistent -data 10.0.0.5:5432 /services db

With -persistent no command runs, and the name remains until zkrecipes names unregister.
Exit code 6 then means that the answer was lost: the name may be registered or not.

` + ephemeralHelp,
}

type namesRegisterVerb struct {
	ephemeral
	name       string
	persistent bool
}

func (v *namesRegisterVerb) Flags(f *flag.FlagSet) {
	v.ephemeral.Flags(f)
	f.BoolVar(&v.persistent, "persistent", false, "keep the name after zkrecipes has exited; -data is then empty by default")
}

func (v *namesRegisterVerb) Arguments(args []string) error {
	data := v.data
	rest, err := v.ephemeral.arguments(args, 1)
	if err != nil {
		return err
	}
	v.name = rest[0]
	if v.persistent {
		if v.argv != nil {
			return errors.New("-persistent runs no command: the name remains when zkrecipes exits")
		}
		v.data = data
	}
	return recipes.ValidateName(v.name)
}

func (v *namesRegisterVerb) Run(ctx context.Context, t *verb.Tool) error {
	if v.persistent {
		return v.persist(ctx, t)
	}
	return v.ephemeral.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
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

func (v *namesRegisterVerb) persist(ctx context.Context, t *verb.Tool) error {
	return verb.WaitFor(ctx, t, v.patience(), func(ctx context.Context, s recipes.Client) (recipes.Names, error) {
		n, err := s.Names(v.path)
		if err != nil {
			return nil, err
		}
		err = n.RegisterPersistent(ctx, v.name, []byte(v.data))
		if errors.Is(err, recipes.ErrNodeExists) {
			err = exit.With(exit.Timeout, "%w", err)
		}
		return n, err
	}, func(n recipes.Names) error {
		ctx, cancel := context.WithTimeout(context.Background(), verb.CloseTimeout)
		defer cancel()
		r, err := n.Lookup(ctx, v.name)
		if errors.Is(err, recipes.ErrNoNode) {
			err = fmt.Errorf("%w: the name was registered, and another client unregistered it at once", recipes.ErrNoNode)
		}
		if err != nil {
			return err
		}
		return v.show(t, r.Znode, r.Token)
	})
}

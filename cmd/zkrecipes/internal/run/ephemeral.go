package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ephemeral is embedded by group join and names register. It keeps an ephemeral znode while a
// command runs or, without a command, until a signal arrives.
type ephemeral struct {
	guard
	sessions []int64 // all sessions that have tried, including the current one
}

func (e *ephemeral) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &e.timeout, "timeout", 0, helptext.Common("give up if the znode is not created within this `duration`, including the time to\nconnect; 0 waits for ever"))
	e.graceFlag(f)
	f.StringVar(&e.data, "data", "", helptext.Common("`text` that other clients see; by default this host, process and command"))
}

const ephemeralHelp = `$ZKRECIPES_ZNODE is the path of the znode, and $ZKRECIPES_TOKEN is a number that grows
with each new znode. Until the znode exists, zkrecipes also waits for servers that do
not answer, for -timeout at most. When the znode or the session is lost, the command gets
TERM, and KILL after -grace. zkrecipes passes signals on to the command. Without a
command, a signal ends zkrecipes, and the znode is deleted.

Exit code: the command's, or 128+n if signal n ended the command or the wait for the
znode. Without a command, 0 if a signal came after the znode was created. Otherwise:

    2    wrong usage or configuration; nothing was done
    123  the znode or the session was lost, whatever the command returned
    124  another session has the name, or the time limit has passed although ZooKeeper answers
    125  zkrecipes failed, for example to reach ZooKeeper
    126  the command cannot be run
    127  the command was not found`

// arguments takes PATH, n more arguments and an optional command. It returns the n arguments.
func (e *ephemeral) arguments(args []string, n int) ([]string, error) {
	given, command := args, []string(nil)
	if at := slices.Index(args, "--"); at >= 0 {
		given, command = args[:at], args[at:]
	}
	switch {
	case len(given) != 1+n:
		return nil, fmt.Errorf(`give %s, after the flags; a command follows "--"`, choose(n == 0, "PATH", "PATH and NAME"))
	case command != nil:
		return given[1:], e.guard.Arguments(append(given[:1:1], command...))
	}
	e.path, e.data = given[0], cmp.Or(e.data, verb.Me())
	return given[1:], recipes.ValidatePath(e.path)
}

// create creates a znode with a unique name. If the name exists, owner returns its path and
// its session. That may be an earlier session of this process: the session was lost before the
// reply arrived, and the server has not expired it yet. Then create waits until the znode is
// deleted, and tries again.
func (e *ephemeral) create(ctx context.Context, s recipes.Client, create func() (grant, error), owner func() (znode string, session int64, err error)) (grant, error) {
	earlier := e.sessions
	e.sessions = append(e.sessions, s.ID())
	for {
		h, err := create()
		if !errors.Is(err, recipes.ErrNodeExists) {
			return h, err
		}
		znode, session, failed := owner()
		if failed != nil || !slices.Contains(earlier, session) {
			return grant{}, exit.With(exit.Timeout, "%w", err)
		}
		b, err := s.Barrier(znode) // waits until the znode is deleted
		if err == nil {
			err = b.Wait(ctx)
		}
		if err != nil {
			return grant{}, err
		}
	}
}

func (e *ephemeral) show(t *verb.Tool, znode string, token recipes.Token) error {
	return t.Line(verb.Object{"path", e.path, "znode", znode, "token", int64(token)}, fmt.Sprintf("%s %d", znode, token))
}

func (e *ephemeral) run(ctx context.Context, t *verb.Tool, take func(context.Context, recipes.Client) (grant, error)) error {
	if e.argv != nil {
		return e.guard.run(ctx, t, take)
	}
	r, ctx := job.NewRelay(ctx)
	defer r.Stop()
	return verb.Await(ctx, t, e.patience(), take, func(h grant) error { return e.stay(ctx, h, t) })
}

func (e *ephemeral) patience() verb.Patience {
	return verb.Patience{Timeout: e.timeout, Failure: "no znode was created at " + e.path}
}

// stay shows the znode, and waits for a signal or the loss of the znode.
func (e *ephemeral) stay(ctx context.Context, h grant, t *verb.Tool) error {
	lost, failure := h.Done(), h.Znode()+" could not be deleted at once; it is gone"
	if err := e.show(t, h.Znode(), h.Token()); err != nil {
		release(h, t, e.path, failure)
		return exit.With(exit.Own, "%w", err)
	}
	select {
	case <-ctx.Done():
		release(h, t, e.path, failure)
		return nil
	case <-lost:
		return exit.With(exit.Lost, "%s was lost: %w", h.Znode(), h.Err())
	}
}

var groupJoin = verb.Verb{
	Name: "group join", Usage: "[flags] PATH [-- COMMAND [ARGUMENT...]]", New: verb.New[groupJoinVerb], Otherwise: exit.Own,
	Synopsis: "Be a member of a group while a command runs",
	Help: `Joins the group at PATH, and is a member while the command runs. Without a command it
remains one until a signal, and shows its znode and token on stdout.

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
	f.StringVar(&v.name, "name", "", helptext.Common("the member's `name`, which only one member can have at a time; by default a new\nunique name"))
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
		return v.create(ctx, s, func() (grant, error) {
			return v.grantBy(ctx, s, "membership", grants.Options{Name: v.name, Dialect: v.dialect})
		}, func() (znode string, session int64, err error) {
			g, err := s.Group(v.path, recipes.GroupConfig{Dialect: v.dialect})
			if err != nil {
				return "", 0, err
			}
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

var namesRegister = verb.Verb{
	Name: "names register", Usage: "[flags] PATH NAME [-- COMMAND [ARGUMENT...]]", New: verb.New[namesRegisterVerb], Otherwise: exit.Own,
	Synopsis: "Register a name, while a command runs or for good",
	Help: `Registers NAME, exclusively, in the directory at PATH while the command runs. Without a
command it keeps NAME until a signal, and shows its znode and token.

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
	f.BoolVar(&v.persistent, "persistent", false, helptext.Common("keep the name after zkrecipes has exited; -data is then empty by default"))
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
		return v.create(ctx, s, func() (grant, error) {
			return v.grantBy(ctx, s, "name", grants.Options{Name: v.name})
		}, func() (znode string, session int64, err error) {
			n, err := s.Names(v.path)
			if err != nil {
				return "", 0, err
			}
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

package run

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/job"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ephemeral is what group join and names register have in common: an ephemeral znode
// that exists while a command runs or, without a command, until a signal comes.
type ephemeral struct {
	guard
	sessions []int64 // that have tried, the last one included
}

func (e *ephemeral) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &e.timeout, "timeout", 0, "give up if the znode is not there within this `duration`, connecting included; 0\nwaits for ever")
	verb.DurationVar(f, &e.grace, "grace", 5*time.Second, "kill the command if it has not ended this `duration` after its TERM")
	f.StringVar(&e.data, "data", "", "`text` that others see; by default this host, process and command")
}

const ephemeralHelp = `The command finds the path of the znode in $ZKRECIPES_ZNODE, and in $ZKRECIPES_TOKEN a
number that grows each time. Before the znode is there, zkrecipes waits for servers
that do not answer too, for -timeout at most. When the znode or the session is lost, the command is
sent TERM, and KILL after -grace. Signals that zkrecipes gets are passed on to the
command. Without a command a signal ends it, and the znode is deleted.

Exit code: the command's, or 128+n if signal n ended it; 0 for a signal without a
command. Otherwise:

    2    wrong usage or configuration; nothing was done
    123  the znode or the session was lost, whatever the command returned
    124  another session has the name, or the time is over while ZooKeeper answers
    125  zkrecipes failed, for example to reach ZooKeeper
    126  the command cannot be run
    127  the command was not found`

// arguments takes PATH, the n arguments that follow it, and a command if there
// is one. It returns those that follow PATH.
func (e *ephemeral) arguments(args []string, n int) ([]string, error) {
	given, command := args, []string(nil)
	if at := slices.Index(args, "--"); at >= 0 {
		given, command = args[:at], args[at:]
	}
	switch {
	case len(given) != 1+n:
		return nil, fmt.Errorf(`give %s, after the flags; a command goes after "--"`, choose(n == 0, "PATH", "PATH and NAME"))
	case command != nil:
		return given[1:], e.guard.Arguments(append(given[:1:1], command...))
	case e.timeout < 0:
		return nil, errors.New("-timeout must not be negative")
	}
	e.path, e.data = given[0], cmp.Or(e.data, verb.Me())
	return given[1:], recipes.ValidatePath(e.path)
}

// create creates a znode whose name two cannot have at a time. If it exists, owner
// returns its path and its session. That may be one of ours: it was lost before it
// knew that it had created the znode, and the server has not expired it yet. Then
// create waits for that, and tries again.
func (e *ephemeral) create(ctx context.Context, s recipes.Client, create func() (grant, error), owner func() (znode string, session int64, err error)) (grant, error) {
	earlier := e.sessions
	e.sessions = append(e.sessions, s.ID())
	for {
		h, err := create()
		if !errors.Is(err, recipes.ErrNodeExists) {
			return h, err
		}
		znode, session, look := owner()
		if look != nil || !slices.Contains(earlier, session) {
			return grant{}, exit.With(exit.Timeout, "%w", err)
		}
		b, err := s.Barrier(znode) // which is there for as long as a znode is
		if err == nil {
			err = b.Wait(ctx)
		}
		if err != nil {
			return grant{}, err
		}
	}
}

// show shows the znode, where no command runs.
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
	return verb.Patience{Timeout: e.timeout, Failure: "there is no znode of ours at " + e.path}
}

// stay shows that it is there, and waits for the end.
func (e *ephemeral) stay(ctx context.Context, h grant, t *verb.Tool) error {
	lost, failure := h.Done(), h.Znode()+" could not be removed at once, it is gone"
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

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
	"github.com/zkrecipes/zkrecipes/recipes"
)

// ephemeral is embedded by group join and names register. It keeps an ephemeral znode while a
// command runs or, without a command, until a signal arrives.
type ephemeral struct {
	guard
	sessions []int64 // all sessions that have tried, including the current one
}

func (e *ephemeral) Flags(f *flag.FlagSet) {
	verb.DurationVar(f, &e.timeout, "timeout", 0, "give up if the znode is not created within this `duration`, including the time to\nconnect; 0 waits for ever")
	e.graceFlag(f)
	f.StringVar(&e.data, "data", "", "`text` that other clients see; by default this host, process and command")
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
    124  another session has the name, or the time is over although ZooKeeper answers
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

// show writes the znode and its token.
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

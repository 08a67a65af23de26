package look

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var revoke = verb.Verb{
	Name: "revoke", Usage: "[flags] PATH", New: verb.New[revokeVerb], ExitCodeOnly: true,
	Synopsis: "Ask those who hold a shared or priority lock for it",
	Help: `Asks all holders of the shared lock or priority lock at PATH to give it back. A holder
that was started with zkrecipes lock -revocable ends its command then.

    zkrecipes revoke -wait -timeout 1m /reports
    zkrecipes revoke -force /reports

Whether and when a holder gives way is up to the holder. Plain locks, semaphores and
elections cannot be revoked.

With -wait, zkrecipes also waits until all that were asked have given the lock back,
for -timeout at most.

With -force, zkrecipes waits too. It deletes the znode of a holder that is still there
when the time that it allows is over (lock -force-after). That holder may not know
that it has lost the lock, and go on: what it changes has to check its token.

A request stays when zkrecipes has given up waiting: zkrecipes contenders PATH shows
who is still there. A signal ends the wait, with exit code 128+n.

Exit code: 0 if all were asked or, with -wait or -force, are gone. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    no shared lock or priority lock is held there
    4    a holder does not allow it to be asked, or forced; the others were asked
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  a holder was still there when the time was over`,
}

type revokeVerb struct {
	verb.Waiting
	wait, force bool
	path, znode string
}

func (v *revokeVerb) Flags(f *flag.FlagSet) {
	f.BoolVar(&v.wait, "wait", false, "wait until all that were asked have given the lock back")
	f.BoolVar(&v.force, "force", false, "take the lock away when the time that its holder allows is over")
	verb.DurationVar(f, &v.Timeout, "timeout", 0, "give up after this `duration`, connecting included; 0 waits\nfor ever")
	f.StringVar(&v.znode, "znode", "", "ask only the contender with this znode, even if it waits: a `path`, as zkrecipes\ncontenders -format=json shows it")
}

func (v *revokeVerb) Arguments(args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("give one PATH, after the flags")
	case v.wait && v.force:
		return errors.New("-force waits by itself: leave -wait out")
	}
	v.path = args[0]
	return cmp.Or(v.Check(false), recipes.ValidatePath(v.path))
}

func (v *revokeVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := verb.Patience{Timeout: v.Timeout, Try: !v.wait && !v.force, Failure: "not all that were asked for " + v.path + " have given it back"}
	var bounded context.Context
	var session recipes.Client
	return verb.WaitFor(ctx, t, p, func(ctx context.Context, s recipes.Client) ([]recipes.Contender, error) {
		bounded, session = ctx, s
		return v.targets(ctx, s)
	}, func(targets []recipes.Contender) error { // in no other session: it would find others to ask
		asked, err := v.ask(bounded, session, targets)
		if err != nil {
			return err
		}
		if err := v.show(t, asked); err != nil {
			return err
		}
		return worst(asked)
	})
}

// targets are those who hold, or the one that was named.
func (v *revokeVerb) targets(ctx context.Context, s recipes.Recipes) (targets []recipes.Contender, err error) {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	lines, err := s.Contenders(ctx, v.path, recipes.KindSharedLock, recipes.KindPriorityLock)
	if err != nil {
		return nil, err
	}
	for _, c := range lines.Contenders {
		if v.znode == c.Znode || v.znode == "" && c.Holds {
			targets = append(targets, c)
		}
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case v.znode != "":
		return nil, exit.With(exit.Absent, "%s does not stand in the line of a shared lock or a priority lock at %s", v.znode, v.path)
	}
	return nil, exit.With(exit.Absent, "no shared lock or priority lock is held at %s; zkrecipes contenders %s lists the contenders", v.path, v.path)
}

// revocation is one contender's answer.
type revocation struct {
	Znode string `json:"znode"`
	Kind  string `json:"kind"`
	verb.Data
	Result string `json:"result"` // asked, gone, refused, failed
	Error  string `json:"error,omitempty"`

	data []byte
	err  error
}

// revoker is the asking end of a shared lock or a priority lock.
type revoker interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

// ask asks all of them at the same time: the times that they have allowed, or
// take, run side by side.
func (v *revokeVerb) ask(ctx context.Context, s recipes.Recipes, targets []recipes.Contender) ([]revocation, error) {
	shared, err := s.SharedLock(v.path, recipes.SharedLockConfig{})
	if err != nil {
		return nil, err
	}
	prior, err := s.PriorityLock(v.path, recipes.PriorityLockConfig{})
	if err != nil {
		return nil, err
	}
	asked := make([]revocation, len(targets))
	var g errgroup.Group
	for i, c := range targets {
		g.Go(func() error {
			l := revoker(shared)
			if c.Kind == recipes.KindPriorityLock {
				l = prior
			}
			asked[i] = v.result(c, v.revoke(ctx, l, c))
			if v.wait && asked[i].err == nil {
				asked[i].await(v.awaitGone(ctx, s, c))
			}
			return nil
		})
	}
	return asked, g.Wait()
}

func (v *revokeVerb) revoke(ctx context.Context, l revoker, c recipes.Contender) error {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout+c.Grace)
	defer cancel()
	if v.force {
		return l.RevokeForced(ctx, c.Znode)
	}
	return l.Revoke(ctx, c.Znode)
}

// awaitGone waits until a contender has left. Its znode is there until then, and
// until a znode is gone is what a barrier waits.
func (v *revokeVerb) awaitGone(ctx context.Context, s recipes.Recipes, c recipes.Contender) error {
	for {
		b, err := s.Barrier(c.Znode)
		if err != nil {
			return err
		}
		if err := b.Wait(ctx); err != nil || c.Kind != recipes.KindPriorityLock {
			return err
		}
		// One that has waited in a priority lock holds under another name.
		lines, err := s.Contenders(ctx, v.path, recipes.KindPriorityLock)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(lines.Contenders, func(other recipes.Contender) bool { return guid(other.Znode) == guid(c.Znode) })
		if at < 0 {
			return nil
		}
		c = lines.Contenders[at]
	}
}

// result is the answer of a contender, in which err is what asking it has returned.
func (v *revokeVerb) result(c recipes.Contender, err error) revocation {
	r := revocation{Znode: c.Znode, Kind: kindOf(c), Data: verb.InJSON(c.Data), Result: "asked", data: c.Data, err: err}
	switch {
	case err == nil && v.force:
		r.Result = "gone"
	case errors.Is(err, recipes.ErrNotRevocable):
		r.Result, r.Error = "refused", "it was not taken with -revocable"
		if c.Revocable {
			r.Error = "it was taken without -force-after, so it can only be asked, without -force"
		}
	case err != nil:
		r.Result, r.Error = "failed", err.Error()
	}
	return r
}

// await notes whether a contender that was asked has left.
func (r *revocation) await(err error) {
	r.err = err
	switch {
	case err == nil:
		r.Result = "gone"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Error = "it has not gone"
	default:
		r.Error = "whether it goes is not known: " + err.Error()
	}
}

func (v *revokeVerb) show(t *verb.Tool, asked []revocation) error {
	return t.Result(verb.Object{"path", v.path, "holders", asked}, func(w io.Writer) {
		for _, r := range asked {
			text := fmt.Sprintf("%s  %s  %s", r.Result, r.Kind, verb.Printable(r.data))
			if r.Error != "" {
				text += ": " + r.Error
			}
			fmt.Fprintln(w, text)
		}
	})
}

// worst is the error of the whole: one that failed comes before one that refused.
func worst(asked []revocation) error {
	refused := false
	for _, r := range asked {
		switch {
		case errors.Is(r.err, recipes.ErrNotRevocable):
			refused = true
		case r.err != nil:
			return r.err
		}
	}
	if refused {
		return exit.Silently(exit.Refused) // the table has said it
	}
	return nil
}

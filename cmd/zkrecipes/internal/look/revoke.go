package look

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var revoke = verb.Verb{
	Name: "revoke", Usage: "[flags] PATH", New: verb.New[revokeVerb], ExitCodeOnly: true,
	Synopsis: "Ask the holders of a shared or priority lock to release it",
	Help: `Asks all holders of the shared lock or priority lock at PATH to release it. A holder
that was started with zkrecipes lock -revocable then ends its command.

    zkrecipes revoke -wait -timeout 1m /reports
    zkrecipes revoke -force /reports

Each holder decides whether and when it releases the lock. Plain locks, semaphores and
elections cannot be revoked.

With -wait, zkrecipes also waits until all holders that were asked have released the
lock, for -timeout at most.

With -force, zkrecipes waits too. It deletes the znode of a holder that has not released
the lock within the time that it allows (lock -force-after). That holder may continue
before it notices the loss, so the receiver of its writes must check the token.

When zkrecipes has given up waiting, the request remains: zkrecipes contenders PATH shows
the remaining holders. A signal ends the wait, with exit code 128+n.

Exit code: 0 if all holders were asked or, with -wait or -force, have gone. Otherwise:

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    no shared lock or priority lock is held there
    4    a holder cannot be asked, or cannot be forced; the others were asked
    6    unknown outcome: the answer was lost; check before you repeat it
    123  the session was lost
    124  a holder still held the lock when the time limit passed`,
}

type revokeVerb struct {
	verb.Waiting
	verb.OnePath
	wait, force bool
	znode       string
}

func (v *revokeVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	f.BoolVar(&v.wait, "wait", false, helptext.Common("wait until all holders that were asked have released it"))
	f.BoolVar(&v.force, "force", false, helptext.Common("take the lock away after the time that its holder allows"))
	f.StringVar(&v.znode, "znode", "", "ask only the contender with this znode, even if it waits: a `path`, as zkrecipes\ncontenders -format=json shows it")
}

func (v *revokeVerb) Arguments(args []string) error {
	if v.wait && v.force {
		return errors.New("-force always waits: leave -wait out")
	}
	return v.OnePath.Arguments(args)
}

func (v *revokeVerb) Run(ctx context.Context, t *verb.Tool) error {
	v.Try = !v.wait && !v.force
	p := v.Patience("not all holders have released " + v.Path)
	var bounded context.Context
	var session recipes.Client
	return verb.WaitFor(ctx, t, p, func(ctx context.Context, s recipes.Client) ([]recipes.Contender, error) {
		bounded, session = ctx, s
		return v.targets(ctx, s)
	}, func(targets []recipes.Contender) error { // not repeated in another session, which could find other holders
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

func (v *revokeVerb) targets(ctx context.Context, s recipes.Recipes) (targets []recipes.Contender, err error) {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	lines, err := s.Contenders(ctx, v.Path, recipes.KindSharedLock, recipes.KindPriorityLock)
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
		return nil, exit.With(exit.Absent, "%s is not a contender of a shared lock or a priority lock at %s", v.znode, v.Path)
	}
	return nil, exit.With(exit.Absent, "no shared lock or priority lock is held at %s; zkrecipes contenders %s lists the contenders", v.Path, v.Path)
}

type revocation struct {
	Znode string `json:"znode"`
	Kind  string `json:"kind"`
	verb.Data
	Result string `json:"result"` // asked, gone, refused, failed
	Error  string `json:"error,omitempty"`

	data []byte
	err  error
}

type revoker interface {
	Revoke(ctx context.Context, znode string) error
	RevokeForced(ctx context.Context, znode string) error
}

// ask asks all targets at the same time, so that the times that they allow or need overlap.
func (v *revokeVerb) ask(ctx context.Context, s recipes.Recipes, targets []recipes.Contender) ([]revocation, error) {
	shared, err := s.SharedLock(v.Path, recipes.SharedLockConfig{})
	if err != nil {
		return nil, err
	}
	prior, err := s.PriorityLock(v.Path, recipes.PriorityLockConfig{})
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

// awaitGone waits until a contender has left the wait queue. It waits for the deletion of the
// contender's znode with a barrier, which is any znode.
func (v *revokeVerb) awaitGone(ctx context.Context, s recipes.Recipes, c recipes.Contender) error {
	for {
		b, err := s.Barrier(c.Znode)
		if err != nil {
			return err
		}
		if err := b.Wait(ctx); err != nil || c.Kind != recipes.KindPriorityLock {
			return err
		}
		// When a waiter of a priority lock is granted, its znode gets another name.
		lines, err := s.Contenders(ctx, v.Path, recipes.KindPriorityLock)
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

func (v *revokeVerb) result(c recipes.Contender, err error) revocation {
	r := revocation{Znode: c.Znode, Kind: kindOf(c), Data: verb.InJSON(c.Data), Result: "asked", data: c.Data, err: err}
	switch {
	case err == nil && v.force:
		r.Result = "gone"
	case errors.Is(err, recipes.ErrNotRevocable):
		r.Result, r.Error = "refused", "it was acquired without -revocable"
		if c.Revocable {
			r.Error = "it was acquired without -force-after, so -force is not possible"
		}
	case err != nil:
		r.Result, r.Error = "failed", err.Error()
	}
	return r
}

func (r *revocation) await(err error) {
	r.err = err
	switch {
	case err == nil:
		r.Result = "gone"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Error = "it is still a contender"
	default:
		r.Error = "it is unknown whether it leaves: " + err.Error()
	}
}

func (v *revokeVerb) show(t *verb.Tool, asked []revocation) error {
	return t.Result(verb.Object{"path", v.Path, "holders", asked}, func(w io.Writer) {
		for _, r := range asked {
			text := fmt.Sprintf("%s  %s  %s", r.Result, r.Kind, verb.Printable(r.data))
			if r.Error != "" {
				text += ": " + r.Error
			}
			verb.Row(w, "%s", text)
		}
	})
}

// worst returns the error of the verb. A failure takes precedence over a refusal.
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
		return exit.Silently(exit.Refused) // the table shows it
	}
	return nil
}

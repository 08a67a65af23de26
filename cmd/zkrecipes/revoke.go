package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// revokeVerb asks those who hold a shared lock to give it back.
type revokeVerb struct {
	force       bool
	path, znode string
}

func (v *revokeVerb) describe() (arguments, synopsis, help string) {
	return "revoke [flags] PATH", "Ask those who hold a shared lock to give it back", `
Asks all who hold the shared lock at PATH to give it back. They have to have taken
it revocably: zkrecipes lock -revocable ends its command then. Whether and when
they give way is up to them; zkrecipes contenders PATH shows who is still there.

With -force it also waits for them to go, and deletes the znodes of those who have
not gone when the time is over that they have allowed (lock -force-after). They
may not know that they have lost the lock, and go on: what they change has to
check their token.

Locks without -shared or -exclusive, semaphores and elections cannot be revoked.

` + askHelp
}

func (v *revokeVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.force, "force", false, "take the lock away when the time is over that its holder has allowed")
	f.StringVar(&v.znode, "znode", "", "ask only this contender, be it that it waits: `path` of its znode, as contenders\n-format=json shows it")
}

func (v *revokeVerb) arguments(args []string) error {
	if len(args) != 1 {
		return errors.New("give one PATH, after the flags")
	}
	v.path = args[0]
	return recipes.ValidatePath(v.path)
}

func (v *revokeVerb) otherwise() int { return exitFailed }

// revocation is what came of asking one contender.
type revocation struct {
	Znode  string `json:"znode"`
	Kind   string `json:"kind"`
	Data   string `json:"data"`
	Result string `json:"result"` // asked, gone, refused, failed
	Error  string `json:"error,omitempty"`

	err error
}

func (v *revokeVerb) run(ctx context.Context, t *tool, out *output) error {
	// Not ask, which bounds the time: a holder may have allowed a long one.
	return typed(t.withSession(ctx, out, func(s recipes.Session) error {
		targets, err := v.targets(ctx, s)
		if err != nil {
			return err
		}
		asked, err := v.ask(ctx, s, targets)
		if err != nil {
			return err
		}
		if err := v.show(out, asked); err != nil {
			return err
		}
		return worst(asked)
	}))
}

// targets are those who hold, or the one that was named.
func (v *revokeVerb) targets(ctx context.Context, s recipes.Session) (targets []standing, err error) {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	line, err := sharedLine(ctx, s, v.path)
	if err != nil {
		return nil, err
	}
	for _, c := range line {
		if v.znode == c.Znode || v.znode == "" && c.holds {
			targets = append(targets, c)
		}
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case v.znode != "":
		return nil, exitWith(exitAbsent, "%s does not stand in the line of the shared lock at %s", v.znode, v.path)
	}
	return nil, exitWith(exitAbsent, "nobody holds a shared lock at %s; zkrecipes contenders %s shows who is there", v.path, v.path)
}

// ask asks all of them at the same time: the times that they have allowed run
// side by side.
func (v *revokeVerb) ask(ctx context.Context, s recipes.Session, targets []standing) ([]revocation, error) {
	l, err := s.SharedLock(v.path, recipes.SharedLockConfig{})
	if err != nil {
		return nil, err
	}
	asked := make([]revocation, len(targets))
	var g errgroup.Group
	for i, c := range targets {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout+c.grace)
			defer cancel()
			revoke := choose(v.force, l.RevokeForced, l.Revoke)
			asked[i] = v.result(c, revoke(ctx, c.Znode))
			return nil
		})
	}
	return asked, g.Wait()
}

func (v *revokeVerb) result(c standing, err error) revocation {
	r := revocation{Znode: c.Znode, Kind: c.kind, Data: string(c.Data), Result: choose(v.force, "gone", "asked"), err: err}
	if err == nil {
		return r
	}
	r.Result, r.Error = "failed", err.Error()
	if errors.Is(err, recipes.ErrNotRevocable) {
		r.Result, r.Error = "refused", "it was not taken with -revocable"
		if c.revocable {
			r.Error = "it was taken without -force-after, so it can only be asked, without -force"
		}
	}
	return r
}

func (v *revokeVerb) show(out *output, asked []revocation) error {
	return out.result(struct {
		Path    string       `json:"path"`
		Holders []revocation `json:"holders"`
	}{v.path, asked}, func(w io.Writer) {
		for _, r := range asked {
			text := fmt.Sprintf("%s  %s  %s", r.Result, r.Kind, printable([]byte(r.Data)))
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
		return exitError{code: exitRefused} // the table has said it
	}
	return nil
}

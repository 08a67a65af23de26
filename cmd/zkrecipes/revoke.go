package main

import (
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// revokeVerb asks those who hold a shared lock, or a priority lock, to give it
// back.
type revokeVerb struct {
	exitCodeOnly
	waiting
	wait, force bool
	path, znode string
}

func (v *revokeVerb) describe() doc {
	return doc{
		usage:    "revoke [flags] PATH",
		synopsis: "Ask those who hold a shared or priority lock for it",
		about: `
Asks all holders of the shared lock or priority lock at PATH to give it back. A holder
that was started with zkrecipes lock -revocable ends its command then.
`,
		examples: [2]string{
			"zkrecipes revoke -wait -timeout 1m /reports",
			"zkrecipes revoke -force /reports",
		},
		rules: `
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
    3    nobody holds a shared lock or a priority lock there
    4    a holder does not allow it to be asked, or forced; the others were asked
    6    unknown: the answer was lost; look before you repeat it
    123  the session was lost
    124  a holder was still there when the time was over`,
	}
}

func (v *revokeVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.wait, "wait", false, "wait until all that were asked have given the lock back")
	f.BoolVar(&v.force, "force", false, "take the lock away when the time that its holder allows is over")
	durationVar(f, &v.timeout, "timeout", 0, "give up after this `duration`, connecting included; 0 waits\nfor ever")
	f.StringVar(&v.znode, "znode", "", "ask only the contender with this znode, even if it waits: a `path`, as zkrecipes\ncontenders -format=json shows it")
}

func (v *revokeVerb) arguments(args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("give one PATH, after the flags")
	case v.wait && v.force:
		return errors.New("-force waits by itself: leave -wait out")
	}
	if err := v.check(false); err != nil {
		return err
	}
	v.path = args[0]
	return recipes.ValidatePath(v.path)
}

func (v *revokeVerb) otherwise() int { return exitFailed }

func (v *revokeVerb) run(ctx context.Context, t *tool, out *output) error {
	p := patience{timeout: v.timeout, try: !v.wait && !v.force, failure: "not all that were asked for " + v.path + " have given it back"}
	type found struct {
		ctx     context.Context
		session recipes.Session
		targets []recipes.Contender
	}
	return waitFor(ctx, t, out, p, func(ctx context.Context, s recipes.Session) (found, error) {
		targets, err := v.targets(ctx, s)
		return found{ctx, s, targets}, err
	}, func(f found) error { // in no other session: it would find others to ask
		asked, err := v.ask(f.ctx, f.session, f.targets)
		if err != nil {
			return err
		}
		if err := v.show(out, asked); err != nil {
			return err
		}
		return worst(asked)
	})
}

// targets are those who hold, or the one that was named.
func (v *revokeVerb) targets(ctx context.Context, s recipes.Session) (targets []recipes.Contender, err error) {
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
		return nil, exitWith(exitAbsent, "%s does not stand in the line of a shared lock or a priority lock at %s", v.znode, v.path)
	}
	return nil, exitWith(exitAbsent, "nobody holds a shared lock or a priority lock at %s; zkrecipes contenders %s shows who is there", v.path, v.path)
}

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
	waiting
	wait, force bool
	path, znode string
}

func (v *revokeVerb) describe() (arguments, synopsis, help string) {
	return "revoke [flags] PATH", "Ask those who hold a shared or priority lock for it", `
Asks all who hold the shared lock or the priority lock at PATH to give it back.
They have to have taken it revocably: zkrecipes lock -revocable ends its command
then. Whether and when they give way is up to them.

With -wait it also waits until all who were asked have given it back, at most for
-timeout: the exit code says whether they have.

With -force it waits too, and deletes the znodes of those who have not gone when
the time is over that they have allowed (lock -force-after). They may not know that
they have lost the lock, and go on: what they change has to check their token.

Who was asked stays asked, also when zkrecipes has given up waiting; zkrecipes
contenders PATH shows who is still there. Other locks, semaphores and elections
cannot be revoked.

A signal ends the wait, with exit code 128+n.

Exit code: 0 if all were asked or, with -wait or -force, have gone, and otherwise

    1    zkrecipes failed, for example to reach ZooKeeper
    2    wrong usage or configuration; nothing was done
    3    nobody holds a shared lock or a priority lock there
    4    one of them did not agree to be asked, or forced; the others were asked
    6    the answer was lost, and they may have been asked or not: look first
    123  the session was lost
    124  one of them had not gone when the time was over`
}

func (v *revokeVerb) flags(f *flag.FlagSet) {
	f.BoolVar(&v.wait, "wait", false, "wait until those who were asked have given the lock back")
	f.BoolVar(&v.force, "force", false, "take the lock away when the time is over that its holder has allowed")
	durationVar(f, &v.timeout, "timeout", 0, "with -wait or -force: give up waiting after this `duration`, connecting included; 0\nwaits for ever")
	f.StringVar(&v.znode, "znode", "", "ask only this contender, be it that it waits: `path` of its znode, as contenders\n-format=json shows it")
}

func (v *revokeVerb) arguments(args []string) error {
	switch {
	case len(args) != 1:
		return errors.New("give one PATH, after the flags")
	case v.wait && v.force:
		return errors.New("-force waits by itself: leave -wait out")
	case v.timeout != 0 && !v.wait && !v.force:
		return errors.New("-timeout needs -wait or -force: nothing else waits for those who are asked")
	}
	if err := v.check(false); err != nil {
		return err
	}
	v.path = args[0]
	return recipes.ValidatePath(v.path)
}

func (v *revokeVerb) otherwise() int { return exitFailed }

func (v *revokeVerb) run(ctx context.Context, t *tool, out *output) error {
	what := "not all who were asked for " + v.path + " have given it back"
	return v.waiting.run(ctx, t, out, what, func(ctx context.Context, s recipes.Session) error {
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
	})
}

// targets are those who hold, or the one that was named.
func (v *revokeVerb) targets(ctx context.Context, s recipes.Session) (targets []standing, err error) {
	ctx, cancel := context.WithTimeout(ctx, recipes.DefaultOpenTimeout)
	defer cancel()
	for _, look := range []func(context.Context, recipes.Session, string) ([]standing, error){sharedLine, priorityLine} {
		line, err := look(ctx, s, v.path)
		if err != nil {
			return nil, err
		}
		for _, c := range line {
			if v.znode == c.Znode || v.znode == "" && c.holds {
				targets = append(targets, c)
			}
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

package main

import (
	"context"
	"errors"
	"flag"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// lockVerb runs a command under a lock.
type lockVerb struct {
	guard
	try bool
}

func (v *lockVerb) describe() (arguments, synopsis, help string) {
	return "lock [flags] PATH -- COMMAND [ARGUMENT...]", "Run a command while holding a lock", `
Waits for the lock at PATH, runs the command while it is held, and gives it back
when the command has ended. Of all who lock PATH, in any program that follows
ZooKeeper's lock recipe, one runs at a time, in the order in which they came.

` + guardHelp
}

func (v *lockVerb) flags(f *flag.FlagSet) {
	v.guard.flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait for others: exit with 124 if somebody holds it")
}

func (v *lockVerb) arguments(args []string) error {
	if v.try && v.timeout > 0 {
		return errors.New("-try does not wait, so that it takes no -timeout")
	}
	return v.guard.arguments(args)
}

func (v *lockVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.guard.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		l, err := s.Lock(v.path, recipes.LockConfig{Data: []byte(v.data)})
		if err != nil {
			return grant{}, err
		}
		acquire := l.Acquire
		if v.try {
			acquire = l.TryAcquire
		}
		h, err := acquire(ctx)
		if err != nil {
			return grant{}, err
		}
		return grant{Grant: h, giveBack: h.Release}, nil
	})
}

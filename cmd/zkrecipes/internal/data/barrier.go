package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var barrierSet = verb.Verb{
	Name: "barrier set", Usage: "[flags] PATH", New: verb.New[barrierSetVerb], ExitCodeOnly: true,
	Synopsis: "Set a barrier, at which other clients wait",
	Help: `Sets the barrier at PATH. Clients that wait at PATH continue when it is removed.

    zkrecipes barrier set /releases/next
    zkrecipes barrier set -data 'until the backup is done' /releases/next

Clients wait with zkrecipes barrier wait, or in any program that follows ZooKeeper's
recipe. The barrier is the znode PATH itself, and it remains when zkrecipes exits. If the
barrier is already set, that is not an error, and its data does not change.

` + verb.OnceCodes,
}

type barrierSetVerb struct {
	barrier
	data string
}

func (v *barrierSetVerb) Flags(f *flag.FlagSet) {
	f.StringVar(&v.data, "data", "", helptext.Common("`text` for people who read the znode: the reason for the barrier; by default this host and\nprocess"))
}

func (v *barrierSetVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.change(ctx, t, true, func(b recipes.Barrier, ctx context.Context) error {
		return b.Set(ctx, []byte(cmp.Or(v.data, "set by "+verb.Me())))
	})
}

var barrierRemove = verb.Verb{
	Name: "barrier remove", Usage: "[flags] PATH", New: verb.New[barrierRemoveVerb], ExitCodeOnly: true,
	Synopsis: "Remove a barrier, so that all waiting clients continue",
	Help: `Removes the barrier at PATH. All clients that wait at it continue.

    zkrecipes barrier remove /releases/next
    zkrecipes barrier remove -format=json /releases/next

If the barrier is not set, that is not an error.

` + verb.OnceCodes,
}

type barrierRemoveVerb struct{ barrier }

func (v *barrierRemoveVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.change(ctx, t, false, recipes.Barrier.Remove)
}

var barrierWait = verb.Verb{
	Name: "barrier wait", Usage: "[flags] PATH", New: verb.New[barrierWaitVerb], ExitCodeOnly: true,
	Synopsis: "Wait until a barrier is removed",
	Help: `Waits until no barrier is set at PATH. If none is set, it does not wait.

    zkrecipes barrier wait /releases/next
    zkrecipes barrier wait -timeout 10m /releases/next

` + verb.WaitHelp,
}

type barrierWaitVerb struct {
	verb.Waiting
	barrier
}

func (v *barrierWaitVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	v.TryFlag(f, "do not wait: exit with 124 if the barrier is set")
}

func (v *barrierWaitVerb) Arguments(args []string) error {
	return cmp.Or(v.Check(), v.barrier.Arguments(args))
}

func (v *barrierWaitVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := v.Patience("the barrier " + v.Path + " was not removed")
	return verb.Wait(ctx, t, p, v.open, func(ctx context.Context, b recipes.Barrier) (err error) {
		set := false
		if v.Try {
			set, err = b.IsSet(ctx)
		} else {
			err = b.Wait(ctx)
		}
		switch {
		case err != nil:
			return err
		case set:
			return exit.With(exit.Timeout, "the barrier %s is set", v.Path)
		}
		return v.show(t, false)
	})
}

type barrier struct{ verb.OnePath }

func (b *barrier) Arguments(args []string) error {
	if slices.Equal(args, []string{"/"}) {
		return errors.New("/ cannot be a barrier: it always exists")
	}
	return b.OnePath.Arguments(args)
}

func (b *barrier) open(s recipes.Client) (recipes.Barrier, error) { return s.Barrier(b.Path) }

func (b *barrier) change(ctx context.Context, t *verb.Tool, set bool, f func(recipes.Barrier, context.Context) error) error {
	return verb.Once(ctx, t, b.open, func(ctx context.Context, r recipes.Barrier) error {
		if err := f(r, ctx); err != nil {
			return err
		}
		return b.show(t, set)
	})
}

// show writes whether the barrier is set, in JSON only.
func (b *barrier) show(t *verb.Tool, set bool) error {
	return t.Done(verb.Object{"path", b.Path, "set", set})
}

package data

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var barrierSet = verb.Verb{
	Name: "barrier set", Usage: "[flags] PATH", New: verb.New[barrierSetVerb], ExitCodeOnly: true,
	Synopsis: "Set a barrier, at which others wait",
	Help: `Sets the barrier at PATH. Whoever waits at PATH waits until somebody removes it.

    zkrecipes barrier set /releases/next
    zkrecipes barrier set -data 'until the backup is done' /releases/next

Others wait with zkrecipes barrier wait, or in any program that follows ZooKeeper's
recipe. The barrier is the znode PATH itself. It stays when zkrecipes has ended. A
barrier that is set already is no error, and keeps its data.

` + verb.OnceCodes,
}

type barrierSetVerb struct {
	barrier
	data string
}

func (v *barrierSetVerb) Flags(f *flag.FlagSet) {
	f.StringVar(&v.data, "data", "", "`text` for people who look at the znode: why to wait; by default who has set it")
}

func (v *barrierSetVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.change(ctx, t, true, func(b recipes.Barrier, ctx context.Context) error {
		return b.Set(ctx, []byte(cmp.Or(v.data, "set by "+verb.Me())))
	})
}

var barrierRemove = verb.Verb{
	Name: "barrier remove", Usage: "[flags] PATH", New: verb.New[barrierRemoveVerb], ExitCodeOnly: true,
	Synopsis: "Remove a barrier, so that all who wait at it go on",
	Help: `Removes the barrier at PATH. All who wait at it go on.

    zkrecipes barrier remove /releases/next
    zkrecipes barrier remove -format=json /releases/next

A barrier that is not set is no error.

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

With -try it only looks, and exits with 124 if the barrier is set.

` + verb.WaitHelp,
}

type barrierWaitVerb struct {
	verb.Waiting
	barrier
	try bool
}

func (v *barrierWaitVerb) Flags(f *flag.FlagSet) {
	v.Waiting.Flags(f)
	f.BoolVar(&v.try, "try", false, "do not wait: exit with 124 if the barrier is set")
}

func (v *barrierWaitVerb) Arguments(args []string) error {
	return cmp.Or(v.Check(v.try), v.barrier.Arguments(args))
}

func (v *barrierWaitVerb) Run(ctx context.Context, t *verb.Tool) error {
	p := verb.Patience{Timeout: v.Timeout, Try: v.try, Failure: "the barrier " + v.Path + " was not removed"}
	return verb.Wait(ctx, t, p, v.open, func(ctx context.Context, b recipes.Barrier) (err error) {
		set := false
		if v.try {
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

// barrier is the path of one.
type barrier struct{ verb.OnePath }

func (b *barrier) Arguments(args []string) error {
	if slices.Equal(args, []string{"/"}) {
		return errors.New("/ cannot be a barrier: it always exists")
	}
	return b.OnePath.Arguments(args)
}

func (b *barrier) open(s recipes.Client) (recipes.Barrier, error) { return s.Barrier(b.Path) }

// change sets or removes the barrier, and says so.
func (b *barrier) change(ctx context.Context, t *verb.Tool, set bool, f func(recipes.Barrier, context.Context) error) error {
	return verb.Once(ctx, t, b.open, func(ctx context.Context, r recipes.Barrier) error {
		if err := f(r, ctx); err != nil {
			return err
		}
		return b.show(t, set)
	})
}

// show says whether it is set.
func (b *barrier) show(t *verb.Tool, set bool) error {
	return t.Done(verb.Object{"path", b.Path, "set", set})
}

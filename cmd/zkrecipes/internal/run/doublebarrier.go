package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/grants"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var doubleBarrier = verb.Verb{
	Name: "double-barrier", Usage: "[flags] PATH SIZE -- COMMAND [ARGUMENT...]", New: verb.New[doubleBarrierVerb], Otherwise: exit.Own,
	Synopsis: "Run a command together with others, from start to end",
	Help: `Waits at PATH until SIZE members have arrived, and runs the command. When the command
has ended, it waits until the commands of all other members have ended too.

    zkrecipes double-barrier /load-test 3 -- ./generate-load
    zkrecipes double-barrier -timeout 5m /load-test 3 -- ./generate-load

All commands begin together, and no zkrecipes exits before all commands have ended. All
members must give the same SIZE; zkrecipes does not compare it. Members beyond SIZE wait
for the next round. A member that dies delays the others until its session expires, at
most.

For members with Curator's DistributedDoubleBarrier or kazoo's DoubleBarrier give
-dialect. They guarantee less: no member may enter again before all have left. If
zkrecipes finds a member of another library, it gives up with exit code 125 and names it.

-timeout limits the wait for the beginning. The wait for the end has no limit: a signal
ends it, with exit code 128+n, and the other members do not wait for this one.

$ZKRECIPES_TOKEN identifies the member. The tokens of all members are valid together, so
a receiver must not refuse one because it has seen a larger one.
` + guardHelp,
}

type doubleBarrierVerb struct {
	guard
	size    int
	dialect recipes.Dialect
}

func (v *doubleBarrierVerb) Flags(f *flag.FlagSet) {
	v.guard.Flags(f)
	verb.DialectFlag(f, &v.dialect)
}

func (v *doubleBarrierVerb) Arguments(args []string) (err error) {
	if len(args) < 2 || args[1] == "--" {
		return errors.New("PATH, SIZE and a command are missing")
	}
	if v.size, err = strconv.Atoi(args[1]); err != nil {
		return fmt.Errorf("SIZE %q is not a number: it is the number of members", args[1])
	}
	if err := (recipes.DoubleBarrierConfig{Size: v.size}).Validate(); err != nil {
		return err
	}
	if len(args) == 2 || args[2] != "--" {
		return errors.New(`the command follows PATH, SIZE and "--"; flags go before PATH`)
	}
	return v.guard.Arguments(append(args[:1:1], args[2:]...))
}

func (v *doubleBarrierVerb) Run(ctx context.Context, t *verb.Tool) error {
	return v.guard.run(ctx, t, func(ctx context.Context, s recipes.Client) (grant, error) {
		g, err := v.grantBy(ctx, s, "passage", grants.Options{Permits: v.size, Dialect: v.dialect})
		if errors.Is(err, context.DeadlineExceeded) && v.timeout > 0 {
			err = exit.With(exit.Timeout, "fewer than %s arrived at %s within %v", english.Count(v.size, "member"), v.path, v.timeout)
		}
		g.together = true
		return g, verb.Foreign(err)
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// doubleBarrierVerb runs a command together with others.
type doubleBarrierVerb struct {
	guard
	size int
}

func (v *doubleBarrierVerb) describe() doc {
	return doc{
		usage:    "double-barrier [flags] PATH SIZE -- COMMAND [ARGUMENT...]",
		synopsis: "Run a command together with others, from start to end",
		about: `
Waits at PATH until SIZE members are there, and runs the command. When the command
has ended, it waits until the commands of all other members have ended too.
`,
		examples: [2]string{
			"zkrecipes double-barrier /load-test 3 -- ./generate-load",
			"zkrecipes double-barrier -timeout 5m /load-test 3 -- ./generate-load",
		},
		rules: `
All members begin together, and none goes on before all have ended. All must give the
same SIZE; zkrecipes does not compare it. Members beyond SIZE wait for the next round.
A member that dies delays the others until its session ends, at most. Curator's and
kazoo's double barriers are others: zkrecipes gives up where it meets their members.

-timeout bounds the wait for the beginning. The wait for the end has no bound: a
signal ends it, with exit code 128+n, and the other members do not wait for this one.

` + guardHelp,
	}
}

func (v *doubleBarrierVerb) arguments(args []string) (err error) {
	if len(args) < 2 || args[1] == "--" {
		return errors.New("PATH, SIZE and a command are missing")
	}
	if v.size, err = strconv.Atoi(args[1]); err != nil {
		return fmt.Errorf("SIZE %q: it is the number of members", args[1])
	}
	if err := (recipes.DoubleBarrierConfig{Size: v.size}).Validate(); err != nil {
		return err
	}
	if len(args) == 2 || args[2] != "--" {
		return errors.New(`the command follows PATH, SIZE and "--"; flags go before PATH`)
	}
	return v.guard.arguments(append(args[:1:1], args[2:]...))
}

func (v *doubleBarrierVerb) run(ctx context.Context, t *tool, out *output) error {
	return v.guard.run(ctx, t, out, func(ctx context.Context, s recipes.Session) (grant, error) {
		b, err := s.DoubleBarrier(v.path, recipes.DoubleBarrierConfig{Size: v.size})
		if err != nil {
			return grant{}, err
		}
		p, err := b.Enter(ctx, []byte(v.data))
		if errors.Is(err, context.DeadlineExceeded) && v.timeout > 0 {
			err = exitWith(exitTimeout, "%d members were not together at %s in %v", v.size, v.path, v.timeout)
		}
		if err != nil {
			return grant{}, foreign(err)
		}
		return grant{Grant: p, giveBack: p.Leave, together: true}, nil
	})
}

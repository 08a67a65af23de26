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

func (v *doubleBarrierVerb) describe() (arguments, synopsis, help string) {
	return "double-barrier [flags] PATH SIZE -- COMMAND [ARGUMENT...]", "Run a command together with others, from start to end", `
Waits at PATH until SIZE members are there, runs the command, and when it has
ended waits until the commands of all others have, too. All begin together, and
none goes on before all have ended. All have to give the same SIZE; it is not
compared. What is more than SIZE waits for the next round.

A member that dies does not keep the others waiting longer than its session lasts.
-timeout bounds the wait for the beginning. There is none for the end: a signal
ends it, with exit code 128+n, and leaves the others to themselves.

` + guardHelp
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
		if late(err) && v.timeout > 0 {
			err = exitWith(exitTimeout, "%d members were not together at %s in %v", v.size, v.path, v.timeout)
		}
		if err != nil {
			return grant{}, err
		}
		return grant{Grant: p, giveBack: p.Leave, together: true}, nil
	})
}

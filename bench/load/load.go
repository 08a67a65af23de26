package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Load is a number of contenders for one path, and how they go about it.
type Load struct {
	Workload Workload
	Recipe   Recipe
	Strategy recipes.Strategy

	// Path is contended for. It should be fresh: whoever else stands in line
	// there is waited for.
	Path string

	// Sessions are the contenders, one each. They stay open.
	Sessions []recipes.Session

	// Hold is for how long each holder keeps what it was granted.
	Hold time.Duration

	// Duration and Warmup are of a Cycle: how long to measure, and how long to
	// run before that. The measured part ends with the first grant after
	// Duration, so it is never shorter.
	Duration, Warmup time.Duration

	// Begin, if not nil, is called when the measured part is about to begin and
	// everybody is at rest; End when it has ended and everybody is at rest
	// again. An error of theirs ends the load.
	Begin, End func(context.Context) error
}

// turnsAlone is how many turns a drain of one contender measures: a line of one
// has nobody to hand anything to, so its turns are measured instead.
const turnsAlone = 100

// Run runs the load. An error that matches [ErrBroken] is a [*Violation]; others
// are those of the recipe, or of a Begin or End. When it returns, no contender
// of the load waits any more, but those of a Cycle may still be on their way out
// of the line until their sessions are closed.
func (l Load) Run(ctx context.Context) (Measurement, error) {
	if len(l.Sessions) == 0 {
		return Measurement{}, errors.New("no contenders: give at least one session")
	}
	if len(l.Sessions) == 1 {
		return l.alone(ctx)
	}
	switch l.Workload {
	case Drain:
		return l.contend(ctx, drain{contenders: len(l.Sessions)})
	case Cycle:
		return l.contend(ctx, cycle{warmup: l.Warmup, duration: l.Duration})
	}
	return Measurement{}, fmt.Errorf("workload %q is unknown", l.Workload)
}

func (l Load) begin(ctx context.Context) error { return call(ctx, l.Begin) }
func (l Load) end(ctx context.Context) error   { return call(ctx, l.End) }

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

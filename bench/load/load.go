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
	Sessions []recipes.Client

	// Hold is for how long each holder keeps what it was granted.
	Hold time.Duration

	// Duration and Warmup are of a Cycle, an Open and a Many: how long to measure, and
	// how long to run before that at least. The measured part of a Cycle begins when it
	// has become steady (Measurement.Warm tells), or after eight times Warmup. It ends
	// with the first grant after Duration, but not before as many handoffs as there are
	// contenders. With a Warmup of 0 it is measured at once.
	Duration, Warmup time.Duration

	// Rounds is how many rounds a workload of rounds measures.
	Rounds int
	// Lines is how many lines a Many has; each gets as many of the sessions.
	Lines int
	// Rate is the acquisitions a second of an Open, Arrivals how they come, and
	// Seed decides when those of a Poisson process do. Its Duration is of the
	// schedule; it is waited as long again for what has not been granted.
	Rate     float64
	Arrivals Arrivals
	Seed     uint64
	// Kill, of a Failover, ends the session of that index without its help. It
	// returns when that is on its way.
	Kill func(ctx context.Context, session int) error
	// CutOff says that Kill only cuts the session off from the servers, so that it
	// has to find out by its own clock. It is then a violation if the next
	// contender is granted before the killed one's session is lost to itself.
	CutOff bool
	// Aftermath, of a Failover, is how long after the next grant the survivors'
	// traffic is counted.
	Aftermath time.Duration
	// Shared says that other processes run the same load at the same path, and
	// that their measurements will be added by Merge. It is of Drain and Cycle,
	// whose lines then begin when Begin returns and end when everybody has left,
	// and of Open. A Cycle warms up for just Warmup, and ends for each contender
	// with the first turn after Duration that it asked for in the measured part.
	Shared bool
	// Enrolled, if not nil, is called when a contender of a line joins it for the first
	// time, by several goroutines at once. It must not block.
	Enrolled func()
	// Begin, if not nil, is called when the measured part is about to begin and
	// everybody is at rest; End when it has ended and everybody is at rest
	// again. An error of theirs ends the load.
	Begin, End func(context.Context) error
}

// turnsAlone is how many turns a drain of one contender measures: a line of one
// has nobody to hand anything to, so its turns are measured instead.
const turnsAlone = 100

// Run runs the load. An error that matches [ErrBroken] is a [*Violation]; others are
// those of the recipe, or of a Begin or End. When it returns, no contender of the load
// waits any more. Those of a Cycle may still be leaving the line until their sessions
// are closed.
func (l Load) Run(ctx context.Context) (Measurement, error) {
	if len(l.Sessions) == 0 {
		return Measurement{}, errors.New("no contenders: give at least one session")
	}
	alone := len(l.Sessions) == 1
	switch l.Workload {
	case Open:
		return l.openLoop(ctx)
	case Many:
		return l.many(ctx)
	case Queue:
		return l.rounds(ctx, l.queueRound)
	case Barrier:
		return l.rounds(ctx, l.barrierRound)
	case DoubleBarrier:
		return l.rounds(ctx, l.doubleBarrierRound)
	case Commit:
		return l.rounds(ctx, l.commitRound)
	case Failover:
		if alone {
			return Measurement{}, errors.New("a failover needs at least 2 contenders")
		}
		return l.failover(ctx)
	case Drain, Cycle:
		switch {
		case l.Shared:
			return l.shared(ctx)
		case alone:
			return l.alone(ctx)
		case l.Workload == Cycle:
			return l.contend(ctx, newCycle(l))
		}
		return l.contend(ctx, drain{contenders: len(l.Sessions)})
	}
	return Measurement{}, fmt.Errorf("workload %q is unknown", l.Workload)
}

func (l Load) enrolled() {
	if l.Enrolled != nil {
		l.Enrolled()
	}
}

func (l Load) begin(ctx context.Context) error { return call(ctx, l.Begin) }
func (l Load) end(ctx context.Context) error   { return call(ctx, l.End) }

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

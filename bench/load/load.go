// Package load puts contenders in line and times how a lock or a leadership
// passes from one to the next. It knows only the contract (package recipes), so
// whatever implements a [recipes.Session] can be measured.
//
// A [Load] names the recipe, the path and the sessions. Its workload is the shape:
//
//   - [Drain]: all contenders stand in line, then each one leaves as soon as it
//     is granted. N contenders give N-1 handoffs, and the line gets shorter by
//     one with each.
//   - [Cycle]: a closed loop. Whoever leaves joins again at the end of the line,
//     which therefore stays as long as it is.
//   - [Failover]: all stand in line, the holder's session is killed, and the
//     time until the next one has been granted is taken. What the survivors send
//     in the second after that is counted too.
//   - [Open]: acquisitions arrive on schedule, whether or not those before them
//     have been granted. A closed loop slows down with what it measures and so
//     hides long waits; this one does not.
//   - [Many]: several lines that have nothing to do with each other cycle at
//     the same time.
//   - [Queue], [Barrier], [DoubleBarrier] and [Commit]: rounds of the recipes of
//     those names, all sessions together.
//
// Times that are easily mixed up have names of their own:
//
//   - wait: from asking (Acquire, Campaign) to being granted. It contains the
//     turns of all who were ahead. In an open load it counts from when the
//     schedule wanted to ask.
//   - handoff: from the moment the holder asks to leave (Release, Resign) to the
//     moment the next one, already in line by then, has been granted. It is the
//     time for which nobody holds.
//   - service: from being granted to having left: the time for which one
//     contender occupies the resource, what it does with it included.
//
// # What is counted
//
// The measured part begins and ends with a holder that stands still while all
// others have come to rest: they wait in line, or have left for good. Counters
// are read at those two moments, so what was sent in between belongs to whole
// operations, nothing is missed and nothing is counted in passing.
//
// # What is checked
//
// A broken lock is fast, and must not win. Every grant is checked against mutual
// exclusion and growing tokens. In a failover, the holder that was cut off must know of
// its loss before the next one is granted. What breaks that is a [Violation], and there
// is no measurement then.
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Workload is the shape of a load.
type Workload string

const (
	// Drain empties a line that everybody has joined before.
	Drain Workload = "drain"
	// Cycle has everybody acquire, hold, release and join again.
	Cycle Workload = "cycle"
	// Failover kills the holder's session and times how long it takes until the
	// next one knows that it has been granted.
	Failover Workload = "failover"
	// Open has acquisitions arrive on schedule, whether or not the ones before
	// have been granted.
	Open Workload = "open"
	// Many is a number of independent lines that cycle at the same time.
	Many Workload = "many"

	// Queue, Barrier, DoubleBarrier and Commit are rounds of the recipes of
	// those names. They have no other recipe and no strategy.
	Queue         Workload = "queue"
	Barrier       Workload = "barrier"
	DoubleBarrier Workload = "double-barrier"
	Commit        Workload = "two-phase-commit"
)

// Own reports whether the workload is of a recipe of its own, so that Recipe and
// Strategy say nothing.
func (w Workload) Own() bool { return w.least() > 0 }

// Shareable reports whether several processes can run the workload together.
func (w Workload) Shareable() bool { return w == Drain || w == Cycle || w == Open || w == Many }

func (w Workload) least() int {
	switch w {
	case Queue, DoubleBarrier:
		return 1
	case Barrier, Commit:
		return 2
	}
	return 0
}

// Workloads returns all workloads.
func Workloads() []Workload {
	return []Workload{Drain, Cycle, Failover, Open, Many, Queue, Barrier, DoubleBarrier, Commit}
}

// ParseWorkload returns the workload of that name, or an error that lists those
// that exist.
func ParseWorkload(name string) (Workload, error) { return parse("workload", name, Workloads()) }

// Arrivals is how the acquisitions of an open load come.
type Arrivals string

const (
	// Constant arrivals are evenly spaced.
	Constant Arrivals = "constant"
	// Poisson arrivals are independent of each other, as those of many clients
	// that know nothing of each other are.
	Poisson Arrivals = "poisson"
)

// ParseArrivals returns the arrivals of that name, or an error that lists those
// that exist.
func ParseArrivals(name string) (Arrivals, error) {
	return parse("arrivals", name, []Arrivals{Constant, Poisson})
}

// Recipe is what is contended for.
type Recipe string

const (
	// Lock is recipes.Lock.
	Lock Recipe = "lock"
	// Election is recipes.Election.
	Election Recipe = "election"
)

// Recipes returns all recipes.
func Recipes() []Recipe { return []Recipe{Lock, Election} }

// ParseRecipe returns the recipe of that name, or an error that lists those that
// exist.
func ParseRecipe(name string) (Recipe, error) { return parse("recipe", name, Recipes()) }

func parse[T ~string](what, name string, known []T) (T, error) {
	if slices.Contains(known, T(name)) {
		return T(name), nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return "", fmt.Errorf("%s %q is unknown; one of %s", what, name, strings.Join(names, ", "))
}

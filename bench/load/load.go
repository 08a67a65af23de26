// Package load lets contenders join a line and times how a lock or a leadership passes
// from one to the next. It knows only the contract (package recipes), so it can measure
// every implementation of [recipes.Client].
//
// A [Load] has the recipe, the path and the sessions. Its workload is the shape:
//
//   - [Drain]: all contenders join the line, then each leaves as soon as it is granted. N
//     contenders make N-1 handoffs, and each makes the line shorter by one.
//   - [Cycle]: a closed loop. A contender that leaves joins again at the end, so the
//     length of the line does not change.
//   - [Failover]: all join the line, and the holder's session is killed. The load times
//     how long it takes until the next contender is granted, and counts what the survivors
//     send until [Load].Aftermath after that.
//   - [Open]: acquisitions arrive on schedule, whether or not earlier ones have been
//     granted. A closed loop slows down with what it measures, and so hides long waits.
//   - [Many]: several independent lines cycle at the same time.
//   - [Timeline]: a closed loop during which faults happen. The load records each second,
//     and the longest time without a grant after each fault.
//   - [Queue], [Barrier], [DoubleBarrier] and [Commit]: rounds of the recipes of those
//     names, all sessions together.
//
// Three durations have names:
//
//   - wait: from the request (Acquire, Campaign) to the grant. It contains the turns of all
//     contenders ahead. In an open load it counts from the scheduled time of the request.
//   - handoff: from the holder's request to leave (Release, Resign) to the grant of the
//     next contender, if that one had joined before the request. During a handoff no
//     contender holds.
//   - service: from the grant until the contender has left. It contains the hold.
//
// # Counters
//
// In a line of one process, the measured part begins and ends with a holder that waits while
// all other contenders are at rest: they wait in line, or have left for good. Counters are
// read at those two moments. Other loads read them when no session sends anything, except at
// the end of a failover. So counters cover whole operations, and miss none. A timeline has no
// counters, because they end with a session.
//
// # Checks
//
// A broken lock is fast, and must not win. Every grant is checked for mutual exclusion and
// for a token that grows. A session that is cut off in a failover, or lost in a timeline, must
// report its loss before the next contender is granted. If a check fails, the load returns a
// [Violation] and no measurement.
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Load describes the contenders for one path, and how they request and leave it.
type Load struct {
	Workload Workload
	Recipe   Recipe
	Permits  int // of a semaphore, for Replay
	Strategy recipes.Strategy

	// Path is the path of the recipe. It should not exist: the load waits behind contenders
	// that are already there.
	Path string

	// Sessions are the contenders, one each. They stay open.
	Sessions []recipes.Client

	// Hold is how long each holder keeps its grant.
	Hold time.Duration

	// Duration and Warmup are for Cycle, Open and Many, and Duration is the length of a Timeline. The load runs for at least Warmup,
	// and then measures for Duration. The measured part of a Cycle begins when the rate of
	// its turns is steady, or after eight times Warmup; with a Warmup of 0 it begins at once.
	// It ends with the first grant after Duration, but has at least as many handoffs as
	// contenders.
	Duration, Warmup time.Duration

	// Rounds is how many rounds a workload of rounds measures.
	Rounds int
	// Lines is how many lines Many has. Each gets the same number of sessions.
	Lines int
	// Rate and Arrivals are for Open: how many acquisitions arrive a second, and how they are
	// spaced. Seed decides the times of a Poisson process. Duration is the length of the
	// schedule. After it, the load waits as long again for grants.
	Rate     float64
	Arrivals Arrivals
	Seed     uint64
	// Kill, for Failover and Timeline, cuts the session with that index off from the
	// servers, and returns when the cut has begun. The session must detect its loss by its
	// own clock. A grant to the next contender before that is a violation.
	Kill func(ctx context.Context, session int) error
	// Faults are those of a Timeline, as timeline.Order sorts them. They are for zkbench only.
	Faults []timeline.Fault
	// Server returns a server to kill, for the faults of a Timeline that kill one. It is for
	// zkbench only.
	Server func(context.Context, timeline.Victim) (timeline.Server, error)
	// Reopen, for Timeline, replaces the session with that index after its loss. The load
	// calls it again after an error that matches recipes.ErrUnavailable.
	Reopen func(ctx context.Context, session int) (recipes.Client, error)
	// Aftermath, for Failover, is how long after the next grant the survivors' traffic is
	// counted.
	Aftermath time.Duration
	// Shared means that other processes run the same load at the same path, and that
	// Workload.Merge combines the measurements. It is for Drain, Cycle and Open. The measured part of a Drain
	// or a Cycle then begins when Begin returns, and ends when all contenders have left. A
	// Cycle warms up for Warmup, steady or not. In the measured part, each contender stops
	// with the first turn that it requested there and that ends after Duration.
	Shared bool
	// Enrolled, if not nil, is called when a contender of a Drain, a Cycle or Many joins its
	// line for the first time. Several goroutines call it at once; it must not block.
	Enrolled func()
	// Begin, if not nil, is called when the measured part is about to begin, and End when
	// it has ended. Until it returns, no contender sends a request. An error ends the load.
	Begin, End func(context.Context) error
}

// Run runs the load. An error that matches [ErrBroken] is a [*Violation]. Other errors are
// those of the recipe, or of Begin, End or Kill. When Run returns, no contender waits. Until
// the caller closes the sessions, a contender of a Cycle may still be leaving the line, and
// after a Failover or an error a contender may still hold.
func (l Load) Run(ctx context.Context) (Measurement, error) {
	if len(l.Sessions) == 0 {
		return Measurement{}, errors.New("no contenders: give at least one session")
	}
	if l.Begin == nil {
		l.Begin = nothing
	}
	if l.End == nil {
		l.End = nothing
	}
	if l.Enrolled == nil {
		l.Enrolled = func() {}
	}
	switch l.Workload {
	case Open:
		return l.openLoop(ctx)
	case Many:
		return l.many(ctx)
	case Timeline:
		return l.timeline(ctx)
	case Queue:
		return l.rounds(ctx, l.queueRound)
	case Barrier:
		return l.rounds(ctx, l.barrierRound)
	case DoubleBarrier:
		return l.rounds(ctx, l.doubleBarrierRound)
	case Commit:
		return l.rounds(ctx, l.commitRound)
	case Failover:
		if len(l.Sessions) == 1 {
			return Measurement{}, errors.New("a failover needs at least 2 contenders")
		}
		return l.failover(ctx)
	case Drain, Cycle:
		switch {
		case l.Shared:
			return l.shared(ctx)
		case l.Workload == Cycle:
			return l.contend(ctx, &cycle{warmup: warmup{shortest: l.Warmup}, duration: l.Duration, contenders: int64(len(l.Sessions))})
		}
		return l.contend(ctx, drain{contenders: len(l.Sessions)})
	}
	return Measurement{}, fmt.Errorf("workload %q is unknown", l.Workload)
}

func nothing(context.Context) error { return nil }

// Workload is the shape of a load.
type Workload string

const (
	// Drain empties a line that all contenders have joined.
	Drain Workload = "drain"
	// Cycle acquires, holds, releases and joins again.
	Cycle Workload = "cycle"
	// Failover kills the holder's session and times how long it takes until the next
	// contender's call returns the grant.
	Failover Workload = "failover"
	// Open starts acquisitions on schedule, whether or not earlier ones have been granted.
	Open Workload = "open"
	// Many runs independent lines that cycle at the same time.
	Many Workload = "many"
	// Timeline runs a closed loop during which faults happen, and records its seconds.
	Timeline Workload = "timeline"

	// Queue, Barrier, DoubleBarrier and Commit run rounds of the recipes of those names.
	// Load.Recipe and Load.Strategy do not apply.
	Queue         Workload = "queue"
	Barrier       Workload = "barrier"
	DoubleBarrier Workload = "double-barrier"
	Commit        Workload = "two-phase-commit"
)

// Own reports whether the workload has a recipe of its own, so that Load.Recipe and
// Load.Strategy do not apply.
func (w Workload) Own() bool { return w.least() > 0 }

// Shareable reports whether several processes can run the workload together.
func (w Workload) Shareable() bool { return w == Drain || w == Cycle || w == Open || w == Many }

// least is how many sessions a workload of rounds needs, and 0 for the others.
func (w Workload) least() int {
	switch w {
	case Queue, DoubleBarrier:
		return 1
	case Barrier, Commit:
		return 2
	}
	return 0
}

// Validate returns an error that lists the valid values if w is not one of them.
func (w Workload) Validate() error {
	return validate("workload", w, Drain, Cycle, Failover, Open, Many, Timeline, Queue, Barrier, DoubleBarrier, Commit)
}

// Arrivals is how the acquisitions of an open load arrive.
type Arrivals string

const (
	// Constant arrivals are evenly spaced.
	Constant Arrivals = "constant"
	// Poisson arrivals are independent of each other, like those of many clients.
	Poisson Arrivals = "poisson"
)

// Validate returns an error that lists the valid values if a is not one of them.
func (a Arrivals) Validate() error { return validate("arrivals", a, Constant, Poisson) }

// Recipe is the recipe that the contenders request.
type Recipe string

const (
	// Lock is recipes.Lock.
	Lock Recipe = "lock"
	// Election is recipes.Election.
	Election Recipe = "election"
)

// Validate returns an error that lists the valid values if r is not one of them.
func (r Recipe) Validate() error { return validate("recipe", r, Lock, Election) }

func validate[T ~string](what string, name T, known ...T) error {
	if slices.Contains(known, name) {
		return nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return fmt.Errorf("%s %q is unknown; one of %s", what, string(name), strings.Join(names, ", "))
}

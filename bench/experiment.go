// Package bench runs experiments on locks, elections and the other recipes. It measures
// how fast they change hands and what that costs, for several numbers of contenders, strategies of
// waiting and ways to reach ZooKeeper.
//
// It knows only the contract (package recipes). The caller provides the ways to open
// a session. In order:
//
//  1. Describe an [Experiment] and check it with [Experiment.Validate].
//  2. Get its [Trial]s, in the order in which to run them, from [Experiment.Trials].
//  3. Run each with [Experiment.Run], which returns a record.Record.
//  4. Render the records with package record, or write them to a file for later.
//
// Package bench/load puts the load on a recipe. Package bench/record holds the results
// and defines their file format.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Experiment is a set of combinations to compare. Every list except Delays must have a value.
type Experiment struct {
	Recipes    []load.Recipe
	Workloads  []load.Workload
	Strategies []recipes.Strategy
	Contenders []int
	Transports []Transport
	// Delays are round-trip times that a relay in this process adds to what each session
	// sends and receives. The default is a single delay of 0, which needs no relay.
	Delays []time.Duration

	// Count is how many trials each combination has. With six or more, benchstat
	// gives confidence intervals.
	Count int
	// Seed decides the order of the trials. With the trial's number, it also decides the
	// arrivals of load.Open.
	Seed uint64
	// Ascending orders the first round from few contenders to many, so that the caller
	// can estimate the time of long lines before it runs them.
	Ascending bool

	// Hold, Duration and Warmup are those of load.Load.
	Hold, Duration, Warmup time.Duration

	// Faults and Server are those of load.Load, for load.Timeline. They are for zkbench only.
	Faults []timeline.Fault
	Server func(context.Context, timeline.Victim) (timeline.Server, error)

	// Rounds is how many rounds a workload of rounds measures, as in load.Load; 0 means 20.
	Rounds int
	// Lines is how many lines load.Many has; 0 means 1.
	Lines int
	// Rate and Arrivals are for load.Open, as in load.Load.
	Rate     float64
	Arrivals load.Arrivals

	// Check returns why a trial is invalid, for example because the load generator was
	// the limit. The reasons become record.Record.Invalid. If Check is nil, every trial
	// is valid.
	Check func(record.Record) (reasons []string)

	// Session is the configuration of each session.
	Session recipes.SessionConfig

	// Root is the path below which each trial has a path of its own. It should not exist.
	// Parents of lines stay there; servers with container nodes delete them.
	Root string

	// Figures reads the server's own counters, by the server's names. Run calls it before
	// and after the measured part of each trial. If it is nil, the records have no such
	// figures.
	Figures func(context.Context) (map[string]float64, error)
	// Wanted names the figures that the server should report. A record lists the missing ones.
	Wanted []string

	// Progress, if not nil, is called with the number of a trial's sessions that are
	// "open", and then with the number of contenders that are "in line" (see
	// load.Load.Enrolled). Several goroutines call it at once; it must not block.
	Progress func(what string, done, of int)

	// Part is this process's part if several processes run the same trials, and nil if
	// this process runs alone.
	Part *Part
}

// Part is one of several processes that run each trial together. Contenders, Lines and
// Rate count per process. All processes share one line; with load.Many each has lines of
// its own. [Merge] combines the records.
type Part struct {
	Number, Of int // this process, from 1, and how many there are
	// Begin returns when all processes are about to begin a trial's measured part,
	// End when all have ended it.
	Begin, End func(context.Context) error
}

// Transport is a way to reach the recipes.
type Transport struct {
	Name string
	Open recipes.Opener
	// Processes returns the ids of the other processes in which the sessions live. It
	// is nil if they live in this process.
	Processes func() []int
}

// Trial is one run of one combination.
type Trial struct {
	Number     int // from 1, in the order of Experiment.Trials
	Recipe     load.Recipe
	Workload   load.Workload
	Strategy   recipes.Strategy
	Contenders int
	Transport  Transport
	Delay      time.Duration
}

// Validate returns an error if the experiment cannot run. It sends nothing.
func (e Experiment) Validate() error {
	has := func(w load.Workload) bool { return slices.Contains(e.Workloads, w) }
	unshared := slices.ContainsFunc(e.Workloads, func(w load.Workload) bool { return !w.Shareable() })
	least := slices.Min(append([]int{math.MaxInt}, e.Contenders...))
	for _, mistake := range []struct {
		made bool
		what string
	}{
		{len(e.Recipes) == 0, "no recipes; give at least one"},
		{len(e.Workloads) == 0, "no workloads; give at least one"},
		{len(e.Strategies) == 0, "no strategies; give at least one"},
		{len(e.Contenders) == 0, "no contenders; give at least one"},
		{len(e.Transports) == 0, "no transports; give at least one"},
		{least < 1, fmt.Sprintf("%d contenders; at least 1", least)},
		{least < 2 && has(load.Failover), "a failover needs at least 2 contenders: one to kill and one to follow"},
		{least < 2 && (has(load.Barrier) || has(load.Commit)), "a barrier and a two-phase commit need at least 2 contenders"},
		{e.Rounds < 0, fmt.Sprintf("%d rounds; at least 1", e.Rounds)},
		{has(load.Open) && !(e.Rate > 0), "an open load needs a rate of more than 0 acquisitions a second"},
		{e.Lines < 0, fmt.Sprintf("%d lines; at least 1", e.Lines)},
		{e.Count < 1, fmt.Sprintf("count is %d; at least 1", e.Count)},
		{min(e.Hold, e.Duration, e.Warmup) < 0, "hold, duration and warm-up must not be negative"},
		{slices.Min(append([]time.Duration{0}, e.Delays...)) < 0, "a delay must not be negative"},
		{has(load.Timeline) && e.Duration <= timeline.End(e.Faults), fmt.Sprintf("a timeline of %v ends before its last fault has, at %v", e.Duration, timeline.End(e.Faults))},
		{unshared && e.Part != nil, "queue, barriers, two-phase-commit, failover and timeline need a single process; several can run drain, cycle, open and many"},
	} {
		if mistake.made {
			return errors.New("experiment: " + mistake.what)
		}
	}
	if err := recipes.ValidatePath(e.Root); err != nil {
		return fmt.Errorf("experiment: root: %w", err)
	}
	return nil
}

// Trials returns the trials in the order in which to run them: Count rounds, each with
// one trial of each combination, shuffled. So a change during the experiment (a
// neighbour's load, a filling disk) hits all combinations alike. If the experiment is
// interrupted, the numbers of trials of any two combinations differ by at most one. A
// shuffle of all trials at once would promise neither.
func (e Experiment) Trials() []Trial {
	combinations := e.combinations()
	random := rand.New(rand.NewPCG(e.Seed, 0))
	var trials []Trial
	for round := range e.Count {
		order := random.Perm(len(combinations))
		if e.Ascending && round == 0 {
			slices.SortStableFunc(order, func(i, j int) int {
				return combinations[i].Contenders - combinations[j].Contenders
			})
		}
		for _, i := range order {
			trial := combinations[i]
			trial.Number = len(trials) + 1
			trials = append(trials, trial)
		}
	}
	return trials
}

func (e Experiment) combinations() (all []Trial) {
	delays := e.Delays
	if len(delays) == 0 {
		delays = []time.Duration{0}
	}
	for _, recipe := range e.Recipes {
		for _, workload := range e.Workloads {
			for _, strategy := range e.Strategies {
				trial := Trial{Recipe: recipe, Workload: workload, Strategy: strategy}
				if workload.Own() { // such a workload ignores both: run it once
					if recipe != e.Recipes[0] || strategy != e.Strategies[0] {
						continue
					}
					trial.Recipe, trial.Strategy = load.Recipe(workload), ""
				}
				for _, trial.Contenders = range e.Contenders {
					for _, trial.Transport = range e.Transports {
						for _, trial.Delay = range delays {
							all = append(all, trial)
						}
					}
				}
			}
		}
	}
	return all
}

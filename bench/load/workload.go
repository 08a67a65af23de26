package load

import (
	"fmt"
	"slices"
	"strings"
)

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

// least is how many sessions a round needs; 0 for workloads without rounds.
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

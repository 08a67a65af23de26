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
)

// Workloads returns all workloads.
func Workloads() []Workload { return []Workload{Drain, Cycle} }

// ParseWorkload returns the workload of that name, or an error that lists those
// that exist.
func ParseWorkload(name string) (Workload, error) { return parse("workload", name, Workloads()) }

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

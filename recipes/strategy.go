package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// Strategy is how a contender waits for its turn. It decides what waiting
// costs, never who is next: contenders of every strategy can stand in one line.
type Strategy string

const (
	// Herd: every waiter watches the first in line, and each departure wakes
	// them all; each then lists the line again. The recipe text calls this
	// trivial and warns of it: one handoff with n waiting costs n-1 watch
	// events and n-1 listings of up to n names. It is here to be measured
	// against. Source: ZooKeeper Recipes, "Leader Election", the first form.
	Herd Strategy = "herd"

	// Predecessor: every waiter watches the nearest contender ahead that can
	// block it, so that a departure wakes exactly one. One handoff costs one
	// watch event and two reads, one of which lists the n names in line.
	// Source: ZooKeeper Recipes, "Locks" and "Leader Election". Two of the
	// texts say "the smallest sequence number j such that j < i", which would
	// have everybody watch the first in line, the herd that the paragraph
	// above it wants to avoid; it is the largest j < i, as the Apache page
	// has it.
	Predecessor Strategy = "predecessor"

	// DefaultStrategy is what the empty Strategy stands for.
	DefaultStrategy = Predecessor
)

// Strategies returns all strategies, in the order in which they are documented.
func Strategies() []Strategy { return []Strategy{Herd, Predecessor} }

// ParseStrategy returns the strategy of that name; "" is [DefaultStrategy]. The
// error matches [ErrInvalid] and names the strategies that exist.
func ParseStrategy(name string) (Strategy, error) {
	if name == "" {
		return DefaultStrategy, nil
	}
	if s := Strategy(name); slices.Contains(Strategies(), s) {
		return s, nil
	}
	names := make([]string, 0, len(Strategies()))
	for _, s := range Strategies() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("%w: strategy %q is unknown; one of %s", ErrInvalid, name, strings.Join(names, ", "))
}

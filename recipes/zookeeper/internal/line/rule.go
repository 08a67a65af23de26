package line

import "github.com/zkrecipes/zkrecipes/recipes"

// Rule returns the contenders ahead that block a contender, in order. It must be pure.
// Line.Permits says how many of them keep the contender from being granted.
type Rule func(predecessors []Entry, me Entry) (blockers []Entry)

// Exclusive is the rule of locks, elections and semaphores: every contender ahead blocks.
func Exclusive(predecessors []Entry, _ Entry) []Entry { return predecessors }

// Shared is the rule of read and write locks: a reader is blocked by the writers ahead, a
// writer by every contender ahead. Only contenders ahead can block. If a reader waited for a
// later writer, the two would wait for each other.
func Shared(reader string) Rule {
	return func(predecessors []Entry, me Entry) []Entry {
		if me.Kind != reader {
			return predecessors
		}
		var writers []Entry
		for _, e := range predecessors {
			if e.Kind != reader {
				writers = append(writers, e)
			}
		}
		return writers
	}
}

// watched returns the blockers that a waiter watches. The waiter is granted when fewer than
// permits blockers remain, so it watches permits of them: one of these must leave first, and no
// wake-up is missed. If it watched fewer, all of them could stay while others leave. With the
// strategy Herd it watches the first contenders, so each departure at the front wakes all
// waiters. With Predecessor it watches the nearest ones ahead. With one permit that is the
// largest j < i that can block. So a departure wakes at most permits waiters, however long the
// wait queue is, and only one if the first contender leaves.
func watched(strategy recipes.Strategy, blockers []Entry, permits int) []Entry {
	if strategy == recipes.Herd {
		return blockers[:permits]
	}
	return blockers[len(blockers)-permits:]
}

package line

import "github.com/zkrecipes/zkrecipes/recipes"

// Rule says which of the contenders ahead can keep a contender from being
// granted: the blockers, in order, or none. It must be pure. How many of them it
// takes is Line.Permits.
type Rule func(predecessors []Entry, me Entry) (blockers []Entry)

// Exclusive has everybody ahead block. It is the rule of locks, elections and
// semaphores.
func Exclusive(predecessors []Entry, _ Entry) []Entry { return predecessors }

// Shared is the rule of read and write locks: a reader is blocked by the writers
// ahead, a writer by everybody ahead. Only what is ahead can block: a reader
// that waited for a later writer would wait for somebody who waits for it.
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

// watched returns which of the blockers a waiter watches. It is granted when fewer
// than permits of them are left, so it watches permits of them. One of these must
// leave before, so no wake-up is missed. If it watched fewer, all of these could stay
// while the others go. With herd they are the first of the line, so that each
// departure of a first one wakes all. With predecessor they are the nearest ahead;
// for one permit, the largest j < i that can block. So a departure wakes no more
// than permits waiters however long the line, and just one when the first leaves.
func watched(strategy recipes.Strategy, blockers []Entry, permits int) []Entry {
	if strategy == recipes.Herd {
		return blockers[:permits]
	}
	return blockers[len(blockers)-permits:]
}

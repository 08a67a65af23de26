package line

import "github.com/zkrecipes/zkrecipes/recipes"

// Rule says which of the contenders ahead keep a contender from being granted:
// the blockers, in order, or none. It must be pure. Exclusive is the rule of
// locks and elections.
type Rule func(ahead []Entry, me Entry) (blockers []Entry)

// Exclusive has everybody ahead block.
func Exclusive(ahead []Entry, _ Entry) []Entry { return ahead }

// watched returns which of the blockers a waiter watches: the herd all watch
// the first of the line, so that each departure of a first one wakes them all;
// with predecessor it is the largest j < i that can block, which wakes one.
func watched(strategy recipes.Strategy, blockers []Entry) Entry {
	if strategy == recipes.Herd {
		return blockers[0]
	}
	return blockers[len(blockers)-1]
}

package rwlock

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// contender is a contender of a priority lock, as the name of its znode describes it.
type contender struct {
	name     string
	prefix   string // of the name, up to the mode: "_c_<guid>-"
	mode     recipes.Mode
	holds    bool
	priority int
	sequence int32
}

// ranked returns the contenders among the names of the path's children, ranked.
func ranked(names []string, successor string) []contender {
	var all []contender
	for _, name := range names {
		if c, ok := parseName(name); ok {
			all = append(all, c)
		}
	}
	rank(all, successor)
	return all
}

func parseName(name string) (contender, bool) {
	m := line.PriorityName.FindStringSubmatch(name)
	if m == nil {
		return contender{}, false
	}
	sequence, err := strconv.ParseInt(m[4], 10, 32)
	if err != nil {
		return contender{}, false
	}
	priority, _ := strconv.Atoi(m[3])
	c := contender{name: name, prefix: m[1], mode: recipes.Mode(m[2]), priority: priority, sequence: int32(sequence)}
	for waiting, holding := range holdingWord {
		if m[2] == holding {
			c.mode, c.holds = waiting, true
		}
	}
	return c, true
}

// holdingWord is the word for a mode in the name of a holder's znode.
var holdingWord = map[recipes.Mode]string{recipes.Reading: "reading", recipes.Writing: "writing"}

// waitingMarker is the part of a waiter's name between the GUID and the sequence number.
func waitingMarker(mode recipes.Mode, priority int) string {
	return fmt.Sprintf("%s-%02d-", mode, priority)
}

// holdingName is the name of the znode that replaces a waiter's in a claim.
func (c contender) holdingName() string {
	return c.prefix + holdingWord[c.mode] + c.name[len(c.prefix)+len(c.mode):]
}

// rank sorts contenders in the order in which they are granted: the holders, the
// successor, the waiters by priority and sequence number. ZooKeeper repeats its last
// sequence number, and the names decide between equal numbers. That order can be unfair.
// But it is safe, because only a claim grants.
func rank(all []contender, successor string) {
	class := func(c contender) int {
		switch {
		case c.holds:
			return 0
		case c.name == successor:
			return 1
		}
		return 2 + c.priority
	}
	slices.SortFunc(all, func(a, b contender) int {
		if c := cmp.Compare(class(a), class(b)); c != 0 {
			return c
		}
		switch {
		case line.Before(a.sequence, b.sequence):
			return -1
		case line.Before(b.sequence, a.sequence):
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
}

// blockers returns the predecessors that block a contender of that mode, in their order.
func blockers(predecessors []contender, mode recipes.Mode) []contender {
	if mode == recipes.Writing {
		return predecessors
	}
	return slices.DeleteFunc(slices.Clone(predecessors), func(c contender) bool { return c.mode != recipes.Writing })
}

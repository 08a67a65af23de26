package rwlock

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
)

// spot is a contender of a priority lock as its znode's name tells it.
type spot struct {
	name     string
	prefix   string // what comes before the mode: "_c_<guid>-"
	mode     recipes.Mode
	holds    bool
	priority int
	sequence int32
}

var spotName = regexp.MustCompile(`^(.*-|)(read|write|reading|writing)-([0-9]{2})-([0-9]{10}|-[0-9]{9,10})$`)

// spots picks the contenders out of the names of a parent's children.
func spots(names []string) []spot {
	var all []spot
	for _, name := range names {
		if s, ok := parseSpot(name); ok {
			all = append(all, s)
		}
	}
	return all
}

func parseSpot(name string) (spot, bool) {
	m := spotName.FindStringSubmatch(name)
	if m == nil {
		return spot{}, false
	}
	sequence, err := strconv.ParseInt(m[4], 10, 32)
	if err != nil {
		return spot{}, false
	}
	priority, _ := strconv.Atoi(m[3])
	out := spot{name: name, prefix: m[1], mode: recipes.Mode(m[2]), priority: priority, sequence: int32(sequence)}
	for waiting, holding := range holdingWord {
		if m[2] == holding {
			out.mode, out.holds = waiting, true
		}
	}
	return out, true
}

// holdingWord is what a mode is called in the name of a holder's znode.
var holdingWord = map[recipes.Mode]string{recipes.Reading: "reading", recipes.Writing: "writing"}

// waitingMarker is what comes between guid and sequence number.
func waitingMarker(mode recipes.Mode, priority int) string {
	return fmt.Sprintf("%s-%02d-", mode, priority)
}

// heldName is the name of the znode that a claim puts in place of a waiting one.
func (s spot) heldName() string {
	return s.prefix + holdingWord[s.mode] + s.name[len(s.prefix)+len(s.mode):]
}

// rankedSpots returns the contenders among the names, ranked.
func rankedSpots(names []string, heir string) []spot {
	all := spots(names)
	rank(all, heir)
	return all
}

// rank puts contenders in the order in which they are granted: who holds, the
// heir, who waits by priority and number. Equal numbers (ZooKeeper gives them
// at the end of its count) are told apart by name: the claim decides, so an
// order that is unfair there is still safe.
func rank(all []spot, heir string) {
	class := func(s spot) int {
		switch {
		case s.holds:
			return 0
		case s.name == heir:
			return 1
		}
		return 2 + s.priority
	}
	slices.SortFunc(all, func(a, b spot) int {
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

// inTheWay returns which of those ahead, in their order, keep a contender of
// that mode from being granted.
func inTheWay(ahead []spot, mode recipes.Mode) []spot {
	if mode == recipes.Writing {
		return ahead
	}
	var writers []spot
	for _, s := range ahead {
		if s.mode == recipes.Writing {
			writers = append(writers, s)
		}
	}
	return writers
}

package interop_test

import (
	"cmp"
	"fmt"
	"slices"
)

// order is who joined when, as ZooKeeper's transactions tell it, and who had turns when,
// as the witness does. Neither depends on how soon a process is run.
type order struct {
	writers []place // of turns that exclude all others: number of the turn
	readers []place // number of the last turn of a writer
	leases  []lease
	waiting map[int64]int64 // contenders that were seen waiting: czxid, and whose session
}

// place is a turn, and the czxid of the contender's znode. The number in its name begins
// again when an empty path is removed.
type place struct {
	turn  int
	czxid int64
}

// lease is a permit: its czxid, and whose session.
type lease struct{ czxid, session int64 }

// broken are the turns that were not in order. A turn that excludes all others comes
// after those of all that joined before. So whoever stands in line sees one turn at most
// of each other contender before its own. A lock that is acquired again has two.
//
// That is the fairness among equals. A process that is late to join again is not overtaken
// in line, however many turns others have had since its last one. So those are logged,
// and not limited: match.most.
func (o *order) broken() (broken []string) {
	slices.SortFunc(o.writers, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
	for i := 1; i < len(o.writers); i++ {
		if before, after := o.writers[i-1], o.writers[i]; after.czxid < before.czxid {
			broken = append(broken, fmt.Sprintf("contender %d has had turn %d after contender %d", after.czxid, after.turn, before.czxid))
		}
	}
	for _, r := range o.readers {
		next, _ := slices.BinarySearchFunc(o.writers, r.turn+1, func(w place, turn int) int { return cmp.Compare(w.turn, turn) })
		if next > 0 && o.writers[next-1].czxid > r.czxid || next < len(o.writers) && o.writers[next].czxid < r.czxid {
			broken = append(broken, fmt.Sprintf("contender %d has read between turns %v", r.czxid, o.writers[max(next-1, 0):min(next+1, len(o.writers))]))
		}
	}
	if n := o.overtaken(); n > 2 {
		broken = append(broken, fmt.Sprintf("another contender has had %d permits before one that stood in line", n))
	}
	return broken
}

// overtaken is how many permits one session took at most while a contender of another
// stood in line.
func (o *order) overtaken() (most int) {
	slices.SortFunc(o.leases, func(a, b lease) int { return cmp.Compare(a.czxid, b.czxid) })
	for joined, session := range o.waiting {
		others := map[int64]int{}
		from, _ := slices.BinarySearchFunc(o.leases, joined, func(l lease, czxid int64) int { return cmp.Compare(l.czxid, czxid) })
		for _, l := range o.leases[from:] {
			if l.session == session {
				for _, n := range others {
					most = max(most, n)
				}
				break
			}
			others[l.session]++
		}
	}
	return most
}

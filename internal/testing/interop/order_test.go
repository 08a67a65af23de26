package interop_test

import (
	"cmp"
	"fmt"
	"slices"
)

// order is the order in which contenders joined, by ZooKeeper's transactions, and the order
// of their turns, by the witness. Neither depends on when a process runs.
type order struct {
	writers []place // of turns that exclude all others: number of the turn
	readers []place // number of the last turn of a writer
	leases  []lease
	waiting map[int64]int64 // contenders that the bystander found waiting: czxid -> session
}

// place is a turn, and the czxid of the contender's znode. The number in the name is
// not enough: it restarts when an empty path is deleted.
type place struct {
	turn  int
	czxid int64
}

// lease is a permit: the czxid of its znode, and its session.
type lease struct{ czxid, session int64 }

// broken describes the turns that were out of order. A turn that excludes all others comes
// after the turns of all contenders that joined earlier. So a waiter sees at most one turn
// of each other contender before its own, or two if the other acquires again.
//
// This is fairness among waiters. If a process joins again late, the others may have had
// any number of turns since its last one, which is not overtaking. So match.most is logged,
// but not limited.
func (o *order) broken() (broken []string) {
	slices.SortFunc(o.writers, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
	for i := 1; i < len(o.writers); i++ {
		if before, after := o.writers[i-1], o.writers[i]; after.czxid < before.czxid {
			broken = append(broken, fmt.Sprintf("contender %d had turn %d after contender %d", after.czxid, after.turn, before.czxid))
		}
	}
	for _, r := range o.readers {
		next, _ := slices.BinarySearchFunc(o.writers, r.turn+1, func(w place, turn int) int { return cmp.Compare(w.turn, turn) })
		if next > 0 && o.writers[next-1].czxid > r.czxid || next < len(o.writers) && o.writers[next].czxid < r.czxid {
			broken = append(broken, fmt.Sprintf("contender %d read between turns %v", r.czxid, o.writers[max(next-1, 0):min(next+1, len(o.writers))]))
		}
	}
	if n := o.overtaken(); n > 2 {
		broken = append(broken, fmt.Sprintf("a contender had %d permits while another one waited", n))
	}
	return broken
}

// overtaken returns the most permits that one session took while a contender of another
// session waited.
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

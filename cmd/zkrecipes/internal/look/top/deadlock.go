package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// edge is one wait of the wait-for graph: a session waits at a line for another one, which holds it.
type edge struct {
	line           key
	waiter, holder place
}

// cycle is a cycle of the wait-for graph. The holder of each edge is the session that waits in the
// next one, and the last one's holder waits in the first one.
type cycle []edge

// waits returns the edges of a wait queue.
//
// An election has none: a candidate usually continues without the leadership. A semaphore has
// none unless it has one holder, because a waiter needs only one of several holders to release.
// A session that waits for itself is not an edge either: it often belongs to many threads.
func waits(l *line) (all []edge) {
	holders := l.holders()
	if l.kind == recipes.KindElection || l.kind == recipes.KindSemaphore && (l.permits > 1 || len(holders) > 1) {
		return nil
	}
	type pair struct{ waiter, holder int64 }
	known := map[pair]bool{}
	for _, w := range l.contenders {
		for _, h := range holders {
			p := pair{w.SessionID, h.SessionID}
			if w.Holds || w.SessionID == h.SessionID || w.SessionID == 0 || h.SessionID == 0 || known[p] || w.Mode == recipes.Reading && h.Mode == recipes.Reading {
				continue
			}
			known[p] = true
			all = append(all, edge{l.key, placeOf(w), placeOf(h)})
		}
	}
	return all
}

// cycles returns cycles of the wait-for graph: the shortest one through each session, unless
// another one that it returns contains the session.
func cycles(lines []*line) (all []cycle) {
	graph := map[int64][]edge{} // by the session that waits
	for _, l := range lines {
		for _, e := range waits(l) {
			graph[e.waiter.session] = append(graph[e.waiter.session], e)
		}
	}
	contained := map[int64]bool{}
	for _, session := range slices.Sorted(maps.Keys(graph)) {
		if contained[session] {
			continue
		}
		c := shortest(graph, session)
		for _, e := range c {
			contained[e.waiter.session] = true
		}
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// shortest returns the shortest cycle through a session, by breadth-first search, or nil.
func shortest(graph map[int64][]edge, start int64) cycle {
	reached := map[int64]cycle{start: {}}
	for next := []int64{start}; len(next) > 0; next = next[1:] {
		path := reached[next[0]]
		for _, e := range graph[next[0]] {
			longer := append(slices.Clip(path), e)
			if e.holder.session == start {
				return longer
			}
			if _, known := reached[e.holder.session]; !known && len(graph[e.holder.session]) > 0 {
				reached[e.holder.session] = longer
				next = append(next, e.holder.session)
			}
		}
	}
	return nil
}

// confirmed returns the cycles whose znodes are all unchanged in a second reading of their lines.
//
// The lines are not read at the same time, so a cycle of one reading need not have existed. A znode
// with the same czxid in both readings existed when the second one began, and a holder does not
// become a waiter again. So a cycle that is the same in both readings existed at that moment.
func confirmed(suspects []cycle, again []*line) []cycle {
	stands := map[edge]bool{}
	for _, l := range again {
		for _, e := range waits(l) {
			stands[e] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(suspects), func(c cycle) bool {
		return slices.ContainsFunc(c, func(e edge) bool { return !stands[e] })
	})
}

func (c cycle) String() string {
	var parts []string
	for i, e := range c {
		held := c[(i+len(c)-1)%len(c)]
		parts = append(parts, fmt.Sprintf("session %s holds %s and waits for %s", hex(e.waiter.session), held.line.path, e.line.path))
	}
	return "possible deadlock: " + strings.Join(parts, "; ")
}

func hex(session int64) string { return fmt.Sprintf("0x%x", uint64(session)) }

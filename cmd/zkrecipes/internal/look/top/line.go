package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/cmd/zkrecipes/internal/verb"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// line is a wait queue at one reading. Its fields do not change afterwards.
type line struct {
	key
	permits    int // of a semaphore of zkrecipes or kazoo; 0: unknown
	contenders []recipes.Contender
	read       time.Time // the last time at which the listing was read and was the same

	since map[place]time.Time // for each holder, the latest known time at which it was not yet a holder
	rate  float64             // grants a second
	rated bool                // there were two readings
}

// key identifies a wait queue. Contenders of two recipes at one path have two.
type key struct {
	path    string
	kind    recipes.Kind
	dialect recipes.Dialect
}

// place identifies a contender's znode. The token is its czxid, so another znode of the same name
// is another place. A waiter of a priority lock has no token. Its number is used again only if the
// path is deleted, and the creation time then differs.
type place struct {
	znode   string
	token   recipes.Token
	session int64
	created int64
}

func placeOf(c recipes.Contender) place {
	return place{c.Znode, c.Token, c.SessionID, c.Since.UnixMilli()}
}

func linesOf(path string, read recipes.Lines, at time.Time) (all []*line) {
	for _, c := range read.Contenders {
		k := key{path, c.Kind, c.Dialect}
		if n := len(all); n == 0 || all[n-1].key != k {
			all = append(all, &line{key: k, read: at})
		}
		l := all[len(all)-1]
		l.contenders = append(l.contenders, c)
		if k.kind == recipes.KindSemaphore && k.dialect != recipes.Curator {
			l.permits = read.Permits
		}
	}
	return all
}

func (l *line) holders() []recipes.Contender {
	return slices.DeleteFunc(slices.Clone(l.contenders), func(c recipes.Contender) bool { return !c.Holds })
}

func (l *line) waiters() (n int, oldest time.Time) {
	for _, c := range l.contenders {
		if !c.Holds {
			if n == 0 || c.Since.Before(oldest) {
				oldest = c.Since
			}
			n++
		}
	}
	return n, oldest
}

// name is the kind and the library, as in "semaphore:3,curator".
func (l *line) name() string {
	name := string(l.kind)
	if l.permits > 0 {
		name += fmt.Sprintf(":%d", l.permits)
	}
	if verb.OtherLibrary(l.dialect) {
		name += "," + string(l.dialect)
	}
	return name
}

// mutable reports whether a later reading can differ although the names of the children at the path
// do not. A writer of a shared lock can become a reader. Contenders of another library's semaphore
// wait in other places.
func (l *line) mutable() bool {
	return l.kind == recipes.KindSharedLock || l.kind == recipes.KindPriorityLock || l.kind == recipes.KindSemaphore && verb.OtherLibrary(l.dialect)
}

// window is the time over which grants are averaged.
const window = 30 * time.Second

// history is what earlier readings have shown of a wait queue.
type history struct {
	last    *line // the last reading with contenders
	read    time.Time
	grants  int
	samples []sample // the first is at least a window old, if there are older ones
}

type sample struct {
	at     time.Time
	grants int
}

func (h *history) add(l *line) {
	l.since = map[place]time.Time{}
	for _, c := range l.holders() {
		p := placeOf(c)
		switch since, held := h.held(p); {
		case held:
			l.since[p] = since
		case h.last != nil && h.read.After(c.Since): // this holder was granted since the last reading
			l.since[p] = h.read
		default:
			l.since[p] = c.Since
		}
	}
	if h.last != nil {
		h.grants += grants(h.last, l)
	}
	h.last = l
	h.sampled(l.read)
	first, last := h.samples[0], h.samples[len(h.samples)-1]
	if l.rated = last.at.After(first.at); l.rated {
		l.rate = float64(last.grants-first.grants) / last.at.Sub(first.at).Seconds()
	}
}

// sampled records that nothing else was granted until then.
func (h *history) sampled(at time.Time) {
	h.read = at
	h.samples = append(h.samples, sample{at, h.grants})
	for len(h.samples) > 2 && at.Sub(h.samples[1].at) >= window {
		h.samples = h.samples[1:]
	}
}

func (h *history) held(p place) (since time.Time, held bool) {
	if h.last != nil {
		since, held = h.last.since[p]
	}
	return since, held
}

// grants returns how many grants there were between two readings, for wait queues in the order of
// sequence numbers: how far the last holder's number has moved. That includes contenders that
// came and went between the readings, and those that left without a grant. Otherwise, and if the
// numbers began again, it returns the number of new holders.
func grants(before, now *line) int {
	was, is := before.holders(), now.holders()
	if len(is) == 0 {
		return 0
	}
	numbered := now.kind != recipes.KindPriorityLock && (now.kind != recipes.KindSemaphore || !verb.OtherLibrary(now.dialect))
	if numbered && len(was) > 0 {
		if moved := is[len(is)-1].Sequence - was[len(was)-1].Sequence; moved >= 0 { // numbers wrap
			return int(moved)
		}
	}
	n := 0
	for _, c := range is {
		if _, held := before.since[placeOf(c)]; !held {
			n++
		}
	}
	return n
}

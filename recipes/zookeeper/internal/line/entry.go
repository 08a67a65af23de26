package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	gopath "path"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// Entry is a contender, parsed from the name of its znode.
type Entry struct {
	Name     string
	Sequence int32
	Kind     string // the marker before the number: "lock-", "read-", "write-"
}

// Parse returns the contenders among the names of a parent's children. A contender's name ends
// with one of the markers and a sequence number. The marker starts the name or follows a
// hyphen: lock-0000000001, _c_<guid>-lock-0000000001. A marker that begins with two underscores
// may follow anything, as in kazoo's <guid>__lock__0000000001. All other names are ignored.
func Parse(names []string, markers ...string) []Entry {
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		for _, marker := range markers {
			if sequence, ok := parse(name, marker); ok {
				entries = append(entries, Entry{name, sequence, marker})
				break
			}
		}
	}
	return entries
}

// parse returns the sequence number of a contender's name. Numbers of 2^31 and above have
// wrapped and are printed with a sign: lock--2147483648.
func parse(name, marker string) (int32, bool) {
	at := strings.LastIndex(name, marker)
	if at < 0 || at > 0 && name[at-1] != '-' && !strings.HasPrefix(marker, "__") {
		return 0, false
	}
	digits := name[at+len(marker):]
	if len(digits) < 10 || digits[0] == '+' {
		return 0, false // ZooKeeper pads to ten characters
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil
}

// Before reports whether sequence number a was assigned before b. Numbers wrap from 2147483647
// to -2147483648, so they are compared as serial numbers (RFC 1982). That is correct as long as
// the wait queue spans fewer than 2^31 numbers.
func Before(a, b int32) bool { return a-b < 0 }

// Exhausted reports whether the parent has no more numbers. ZooKeeper (3.8.0 and others) stops
// counting at 2147483647 and assigns that number to every later znode. A znode that is created
// while an earlier creation is in progress can get the next number, which is negative.
func (e Entry) Exhausted() bool { return e.Sequence == math.MaxInt32 || e.Sequence < 0 }

// Sort sorts entries by sequence number, and entries of the same number by name.
func Sort(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int {
		switch {
		case Before(a.Sequence, b.Sequence):
			return -1
		case Before(b.Sequence, a.Sequence):
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func (e Entry) bareName() string { return fmt.Sprintf("%s%010d", e.Kind, e.Sequence) }

// Bare reports whether the contender's name is that of a bare znode: its marker and number
// only.
func (e Entry) Bare() bool { return e.Name == e.bareName() }

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

// watched returns the blockers that a waiter watches. The waiter is granted when fewer blockers
// remain than there are permits, so it watches as many blockers as there are permits: one of these
// must leave first, and no wake-up is missed. If it watched fewer, all of them could stay while
// others leave. With the strategy Herd it watches the first contenders, so each departure at the
// front wakes all waiters. With Predecessor it watches the nearest ones ahead. With one permit that
// is the largest j < i that can block. So a departure wakes at most as many waiters as there are
// permits, however long the wait queue is. If the first contender leaves, it wakes only one.
func watched(strategy recipes.Strategy, blockers []Entry, permits int) []Entry {
	if strategy == recipes.Herd {
		return blockers[:permits]
	}
	return blockers[len(blockers)-permits:]
}

// Entries returns the contenders in order. A missing path has none.
func (l *Line) Entries(ctx context.Context) ([]Entry, error) {
	names, err := l.Names(ctx)
	if err != nil {
		return nil, err
	}
	return l.Order(ctx, names)
}

// Names returns the names of the path's children. A missing path has none.
func (l *Line) Names(ctx context.Context) ([]string, error) {
	names, err := l.Session.Children(ctx, l.Path)
	if errors.Is(err, recipes.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// Order returns the contenders among the names of the path's children, in order.
func (l *Line) Order(ctx context.Context, names []string) ([]Entry, error) {
	entries := Parse(names, l.Markers...)
	Sort(entries)
	return entries, l.breakTies(ctx, entries)
}

// breakTies sorts contenders whose numbers do not show which came first, by the creation of
// their znodes. That happens when the parent has no more numbers, until it is deleted and
// created again. Neither numbers nor GUIDs may decide then, because a new contender could get
// ahead of the holder.
//
// A contender that has just left is sorted last in its tie. A read of its znode will not find
// it.
func (l *Line) breakTies(ctx context.Context, entries []Entry) error {
	for start := 0; start < len(entries); {
		end := start + 1
		for end < len(entries) && (entries[end].Sequence == entries[start].Sequence || entries[start].Exhausted() && entries[end].Exhausted()) {
			end++
		}
		if err := l.byCreation(ctx, entries[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func (l *Line) byCreation(ctx context.Context, tied []Entry) error {
	if len(tied) < 2 {
		return nil
	}
	paths := make([]string, len(tied))
	for i, e := range tied {
		paths[i] = gopath.Join(l.Path, e.Name)
	}
	read, err := l.Session.StatAll(ctx, paths)
	if err != nil {
		return err
	}
	created := make(map[string]int64, len(tied))
	for i, e := range tied {
		switch r := read[i]; {
		case r.Err == nil:
			created[e.Name] = r.Value.Czxid
		case errors.Is(r.Err, recipes.ErrNoNode):
			created[e.Name] = math.MaxInt64
		default:
			return r.Err
		}
	}
	slices.SortStableFunc(tied, func(a, b Entry) int { return cmp.Compare(created[a.Name], created[b.Name]) })
	return nil
}

// HasContender reports whether any of a parent's children is a contender.
func (l *Line) HasContender(names []string) bool { return len(Parse(names, l.Markers...)) > 0 }

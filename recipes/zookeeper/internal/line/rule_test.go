package line

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

// entries returns contenders in order. Names that start with r are readers, with w writers.
func entries(kind string, names ...string) []Entry {
	var all []Entry
	for i, name := range names {
		k := kind
		switch name[0] {
		case 'r':
			k = "read-"
		case 'w':
			k = "write-"
		}
		all = append(all, Entry{name, int32(i), k})
	}
	return all
}

// kazoo#649: a reader watched a later writer, and they waited for each other. A Rule sees only
// the contenders ahead.
func TestSharedBlockers(t *testing.T) {
	for _, tt := range []struct{ ahead, me, blockers string }{
		{"", "r", ""},
		{"", "w", ""},
		{"r1 r2", "r", ""},
		{"r1 r2", "w", "r1 r2"},
		{"w1", "r", "w1"},
		{"w1 r1 w2 r2", "r", "w1 w2"},
		{"w1 r1 w2 r2", "w", "w1 r1 w2 r2"},
	} {
		me := entries("", tt.me)[0]
		var got []string
		for _, e := range Shared("read-")(entries("", strings.Fields(tt.ahead)...), me) {
			got = append(got, e.Name)
		}
		if strings.Join(got, " ") != tt.blockers {
			t.Errorf("behind %q, %s is blocked by %q; want %q", tt.ahead, tt.me, got, tt.blockers)
		}
	}
}

func TestWatched(t *testing.T) {
	for _, tt := range []struct {
		strategy recipes.Strategy
		ahead    string
		permits  int
		want     string
	}{
		{recipes.Herd, "a b c", 1, "a"},        // every waiter watches the first
		{recipes.Predecessor, "a b c", 1, "c"}, // the largest j < i; two of the texts print "smallest"
		{recipes.Predecessor, "a b", 2, "a b"}, // the first waiter watches all holders
		{recipes.Predecessor, "a b c", 2, "b c"},
		{recipes.Predecessor, "a b c d e", 3, "c d e"},
		{recipes.Herd, "a b c d e", 3, "a b c"},
	} {
		var got []string
		for _, e := range watched(tt.strategy, Exclusive(entries("lease-", strings.Fields(tt.ahead)...), Entry{}), tt.permits) {
			got = append(got, e.Name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s, %d permits, behind %q: watches %q; want %q", tt.strategy, tt.permits, tt.ahead, got, tt.want)
		}
	}
	if blockers := Exclusive(nil, Entry{}); len(blockers) != 0 {
		t.Errorf("the first contender is blocked by %v", blockers)
	}
}

// In whatever order contenders leave, a waiter that may enter has been woken, and one departure
// wakes at most as many waiters as there are permits.
func TestWatchedMissesNoWakeUp(t *testing.T) {
	for range 2000 {
		permits, n := 1+rand.IntN(4), 1+rand.IntN(12)
		var names []string
		for i := range n {
			names = append(names, string(rune('A'+i)))
		}
		line := entries("lease-", names...)
		watches := make(map[string][]Entry) // by waiter
		for i, e := range line {
			if i >= permits {
				watches[e.Name] = slices.Clone(watched(recipes.Predecessor, line[:i], permits))
			}
		}
		for len(line) > 0 {
			at := rand.IntN(len(line))
			gone := line[at]
			line = slices.Delete(line, at, at+1)
			delete(watches, gone.Name)
			woken := 0
			for i, e := range line {
				set, waiting := watches[e.Name]
				woke := waiting && slices.Contains(set, gone)
				if woke {
					woken++
					if i < permits {
						delete(watches, e.Name)
					} else {
						watches[e.Name] = slices.Clone(watched(recipes.Predecessor, line[:i], permits))
					}
				}
				if waiting && !woke && i < permits {
					t.Fatalf("%s may enter and was not woken by the departure of %s", e.Name, gone.Name)
				}
			}
			if woken > permits {
				t.Fatalf("%d woke for %d permits", woken, permits)
			}
		}
	}
}

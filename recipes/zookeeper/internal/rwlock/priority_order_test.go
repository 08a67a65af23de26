package rwlock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestNamesOfContenders(t *testing.T) {
	for name, want := range map[string]string{
		"_c_guid-read-05-0000000007":       "read 5 7 waits _c_guid-reading-05-0000000007",
		"_c_guid-write-99-0000000007":      "write 99 7 waits _c_guid-writing-99-0000000007",
		"_c_guid-writing-00-0000000007":    "write 0 7 holds",
		"reading-12--2147483648":           "read 12 -2147483648 holds",
		"_c_guid-write-05--000000012":      "write 5 -12 waits _c_guid-writing-05--000000012",
		"_c_read-01-guid-read-05-00000001": "",
		"_c_guid-read-0000000007":          "", // a SharedLock's
		"_c_guid-read-5-0000000007":        "",
		"_c_guid-reads-05-0000000007":      "",
		"xread-05-0000000007":              "",
		"_c_guid-read-05-9999999999":       "",
		"":                                 "",
	} {
		got := ""
		if s, ok := parseName(name); ok {
			got = fmt.Sprintf("%s %d %d holds", s.mode, s.priority, s.sequence)
			if !s.holds {
				got = fmt.Sprintf("%s %d %d waits %s", s.mode, s.priority, s.sequence, s.holdingName())
			}
		}
		if got != want {
			t.Errorf("%q is %q; want %q", name, got, want)
		}
	}
}

// A successor that waits has nothing to give up yet. A holder of the same priority has nothing to
// give up either.
func TestOnlyAHolderOfLowerPriorityIsAsked(t *testing.T) {
	w := &priorityWaiter{me: contender{priority: 3}} // the waiter has no session with which it could ask
	must.Report(t, w.ask(t.Context(), []contender{{priority: 5}, {priority: 3, holds: true}}))
}

func FuzzNamesOfContenders(f *testing.F) {
	f.Add("_c_guid-read-05-0000000007")
	f.Fuzz(func(t *testing.T, name string) {
		s, ok := parseName(name)
		if !ok || s.holds {
			return
		}
		held, ok := parseName(s.holdingName())
		if !ok || !held.holds || held.mode != s.mode || held.priority != s.priority || held.sequence != s.sequence || held.prefix != s.prefix {
			t.Fatalf("%q would hold as %q, which is %+v", name, s.holdingName(), held)
		}
	})
}

// A name is written as r or w, priority, sequence number. A capital is a holder.
func TestOrderOfPriorities(t *testing.T) {
	for _, tt := range []struct{ in, successor, want string }{
		{"w5.1 w5.2 w1.3", "", "w1.3 w5.1 w5.2"},
		{"w5.1 R9.9 w0.3", "", "R9.9 w0.3 w5.1"},                             // a holder is ahead of all waiters
		{"w5.1 w9.2 w1.3", "w9.2", "w9.2 w1.3 w5.1"},                         // the successor, whatever its priority
		{"W5.1 w9.2 w1.3", "w9.2", "W5.1 w9.2 w1.3"},                         // but never ahead of a holder
		{"w5.1 w1.3", "w7.7", "w1.3 w5.1"},                                   // the successor has left
		{"r5.-2147483648 r5.2147483647", "", "r5.2147483647 r5.-2147483648"}, // the number wraps
		{"w5.1 r5.1", "", "r5.1 w5.1"},                                       // equal numbers
	} {
		var all []contender
		for _, word := range strings.Fields(tt.in) {
			all = append(all, contenderOf(t, word))
		}
		rank(all, tt.successor)
		var got []string
		for _, s := range all {
			got = append(got, s.name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s, successor %q: %q; want %q", tt.in, tt.successor, got, tt.want)
		}
	}
}

func contenderOf(t *testing.T, word string) contender {
	s := contender{name: word, mode: recipes.Reading, holds: word[0] < 'a'}
	if word[0] == 'w' || word[0] == 'W' {
		s.mode = recipes.Writing
	}
	if _, err := fmt.Sscanf(word[1:], "%d.%d", &s.priority, &s.sequence); err != nil {
		t.Fatal(word, err)
	}
	return s
}

func TestBlockers(t *testing.T) {
	for _, tt := range []struct {
		ahead string
		mode  recipes.Mode
		want  string
	}{
		{"", recipes.Writing, ""},
		{"R1.1 r1.2", recipes.Reading, ""},
		{"R1.1 r1.2", recipes.Writing, "R1.1 r1.2"},
		{"R1.1 w1.2 r2.3", recipes.Reading, "w1.2"},
		{"W1.1 r1.2 w1.2", recipes.Reading, "W1.1 w1.2"},
	} {
		var ahead []contender
		for _, word := range strings.Fields(tt.ahead) {
			ahead = append(ahead, contenderOf(t, word))
		}
		var got []string
		for _, s := range blockers(ahead, tt.mode) {
			got = append(got, s.name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("behind %q, to %s: %q; want %q", tt.ahead, tt.mode, got, tt.want)
		}
	}
}

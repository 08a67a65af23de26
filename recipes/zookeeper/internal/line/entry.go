package line

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// bareName is the name of the contender's bare znode.
func (e Entry) bareName() string { return fmt.Sprintf("%s%010d", e.Kind, e.Sequence) }

// Bare reports whether the contender's name is that of a bare znode: its marker and number
// only.
func (e Entry) Bare() bool { return e.Name == e.bareName() }

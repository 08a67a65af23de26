package session

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Other clients may store data of their own. Only data that begin with a bare znode's header
// belong to one.
func TestTheDataOfAPlace(t *testing.T) {
	header := barePrefix + strings.Repeat("0", 36) + "-"
	for data, want := range map[string]bool{
		header:                          true,
		header + "data":                 true,
		"":                              false,
		header[:bareHeader-1]:           false,
		header[:bareHeader-1] + "+data": false,
		"_q_" + header[3:] + "data":     false,
	} {
		got, ok := BareData([]byte(data))
		if rest := strings.TrimPrefix(data, header); ok != want || string(got) != rest {
			t.Errorf("%q: %q, %v", data, got, ok)
		}
	}
}

// Siblings interprets the record of a bare znode's parent.
func TestSiblingsByARecord(t *testing.T) {
	place := Stat{Czxid: 7}
	for name, test := range map[string]struct {
		parent Stat
		want   int
	}{
		"the place alone": {Stat{NumChildren: 1, Pzxid: 7}, 0},
		"another one, because the place is deleted": {Stat{NumChildren: 1, Pzxid: 8}, -1},
		"two, and nothing was created since":        {Stat{NumChildren: 2, Pzxid: 7}, 1},
		"three, and something has changed":          {Stat{NumChildren: 3, Pzxid: 9}, 2},
		"none":                                      {Stat{Pzxid: 8}, -1},
	} {
		if n := Siblings(test.parent, place); n != test.want {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// Numbers wrap. The latest comes first, and other names are omitted.
func TestTheLatestNumberComesFirst(t *testing.T) {
	names := []string{"lock-0000000001", "lock-x", "lock-2147483647", "other-0000000009", "lock--2147483648", "lock-2147483646", "lock-99999999999"}
	var got []string
	exhausted := make(map[string]bool)
	for _, n := range latestFirst(names, "lock-") {
		got = append(got, n.name)
		exhausted[n.name] = n.exhausted()
	}
	if want := []string{"lock--2147483648", "lock-2147483647", "lock-2147483646", "lock-0000000001"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	for name, want := range map[string]bool{"lock-0000000001": false, "lock-2147483646": false, "lock-2147483647": true, "lock--2147483648": true} {
		if exhausted[name] != want {
			t.Errorf("%s is exhausted: %v", name, exhausted[name])
		}
	}
	if n := (numbered{number: math.MinInt32}); !n.exhausted() {
		t.Error("the smallest number is exhausted too")
	}
}

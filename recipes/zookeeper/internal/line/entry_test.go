package line_test

import (
	"math"
	"slices"
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes/zookeeper/internal/line"
	"pgregory.net/rapid"
)

func names(entries []line.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestParseIgnoresWhatIsNotAContender(t *testing.T) {
	foreign := []string{
		"", "lock-", "lock", "config", "lock-1", "lock-00000000012", "lock-+000000001", "lock-00000000x1",
		"_c_", "_c_short", "block-0000000001", "_c_guid-block-0000000001", "read-0000000001", "lock-0000000001-x",
		"lock--00000001",
	}
	// More than ten digits are parsed as a number.
	if got := line.Parse(foreign, "lock-"); !slices.Equal(names(got), []string{"lock-00000000012"}) {
		t.Errorf("parsed %q as contenders", names(got))
	}
}

func TestParseReadsTheNamesOfOtherLibraries(t *testing.T) {
	for name, want := range map[string]int32{
		"_c_2aabdd6e-6c54-4cec-b7b8-d68ea9113eaa-lock-0000000075": 75, // ours, Curator
		"_c_2aabdd6e6c540cec7b8d68ea9113eaa3-lock-0000000075":     75, // go-zookeeper
		"lock-0000000000":                       0,
		"_c_guid-lock-2147483647":               math.MaxInt32,
		"_c_guid-lock--2147483648":              math.MinInt32,
		"_c_guid-lock--000000001":               -1,
		"_c_lock-lock-lock-lock-0000000003":     3,
		"_c_11-lock-0000000009-lock-0000000004": 4,
	} {
		got := line.Parse([]string{name}, "lock-")
		if len(got) != 1 || got[0].Sequence != want {
			t.Errorf("%s: %v, want %d", name, got, want)
		}
	}
	if got := line.Parse([]string{"_c_guid-n_0000000007", "_c_guid-ack_0000000007", "n_0000000008"}, "n_"); len(got) != 2 {
		t.Errorf("candidates: %v", got)
	}
}

// ZOOKEEPER-2931, 3162: the GUID or session id at the start of the name decided.
func TestOrderIsBySequenceAndNotByName(t *testing.T) {
	entries := line.Parse([]string{"_c_a-lock-0000000012", "_c_z-lock-0000000009", "lock-0000000011", "_c_m-lock-0000000010"}, "lock-")
	line.Sort(entries)
	want := []string{"_c_z-lock-0000000009", "_c_m-lock-0000000010", "lock-0000000011", "_c_a-lock-0000000012"}
	if !slices.Equal(names(entries), want) {
		t.Fatalf("order %q", names(entries))
	}
}

// ZOOKEEPER-4372, kazoo#730: numbers wrap, and string comparison put new contenders first.
func TestOrderSurvivesTheWrap(t *testing.T) {
	entries := line.Parse([]string{"lock--2147483647", "lock-2147483647", "lock--2147483648", "lock-2147483646"}, "lock-")
	line.Sort(entries)
	want := []string{"lock-2147483646", "lock-2147483647", "lock--2147483648", "lock--2147483647"}
	if !slices.Equal(names(entries), want) {
		t.Fatalf("order %q", names(entries))
	}
}

// Order reads znodes only for contenders that have the same number or exhausted ones. This
// Line has no session to read with.
func TestNumbersDetermineTheOrder(t *testing.T) {
	l := line.Line{Markers: []string{"lock-"}}
	for _, want := range [][]string{
		{"lock-2147483645", "lock-2147483646", "lock-2147483647"},
		{"lock--000000001", "lock-0000000000", "lock-0000000001"},
	} {
		if got, err := l.Order(t.Context(), want); err != nil || !slices.Equal(names(got), want) {
			t.Errorf("order %q, %v; want %q", names(got), err, want)
		}
	}
}

func TestBeforeIsTheOrderOfNumbersFromAnyStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int32().Draw(t, "start")
		step := rapid.Int32Range(1, math.MaxInt32).Draw(t, "step")
		later := start + step // wraps
		if !line.Before(start, later) || line.Before(later, start) {
			t.Fatalf("%d is not before %d", start, later)
		}
		if line.Before(start, start) {
			t.Fatal("before itself")
		}
	})
}

func TestNamesThatEndWithANumber(t *testing.T) {
	for name, want := range map[string]bool{
		"qn-0000000001": true, "-0000000001": true, "_c_guid-entry-100-0000000001": true,
		"0000000001": false, "qn-000000001": false, "qn-": false, "qn": false, "": false, "-": false, "qn-00000000x1": false,
	} {
		if got := line.Numbered(name); got != want {
			t.Errorf("Numbered(%q) is %v", name, got)
		}
	}
}

func TestGUIDsOfKazoo(t *testing.T) {
	const guid = "0123456789abcdef0123456789abcdef"
	for name, want := range map[string]bool{
		guid: true, guid[1:]: false, guid + "0": false, "g" + guid[1:]: false, "A" + guid[1:]: false, guid[:31] + "-": false, "": false,
	} {
		if got := line.GUID(name); got != want {
			t.Errorf("GUID(%q) is %v", name, got)
		}
	}
}

package recipes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpread: the parts differ by one at most, each number has one member, and no more numbers
// move than must.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + random.IntN(50)
		next := Token(0)
		var members []Token
		before := map[Token][]int{}
		for range 20 {
			switch {
			case len(members) > 0 && random.IntN(2) == 0:
				members = slices.Delete(members, 0, 1+random.IntN(len(members)))
			default:
				for range 1 + random.IntN(4) {
					next++
					members = append(members, next)
				}
			}
			after := map[Token][]int{}
			spread(n, before, members, after)
			checkSpread(t, n, before, members, after)
			before = after
		}
	}
}

func checkSpread(t *testing.T, n int, before map[Token][]int, members []Token, after map[Token][]int) {
	t.Helper()
	if len(after) != len(members) {
		t.Fatalf("%v for the members %v", after, members)
	}
	if len(members) == 0 {
		return
	}
	var all, lengths []int
	kept := 0
	for _, m := range members {
		all = append(all, after[m]...)
		lengths = append(lengths, len(before[m]))
		for _, number := range after[m] {
			if slices.Contains(before[m], number) {
				kept++
			}
		}
		if d := len(after[m]) - n/len(members); d != 0 && d != 1 {
			t.Fatalf("%d of %d numbers for one of %d members", len(after[m]), n, len(members))
		}
	}
	slices.Sort(all)
	if len(all) != n || len(slices.Compact(all)) != n || all[n-1] != n-1 {
		t.Fatalf("%d numbers: %v", n, after)
	}
	// The members that owned the most keep one more.
	slices.SortFunc(lengths, func(a, b int) int { return b - a })
	most := 0
	for i, length := range lengths {
		part := n / len(members)
		if i < n%len(members) {
			part++
		}
		most += min(length, part)
	}
	if kept != most {
		t.Fatalf("%d numbers stayed; %d could: from %v to %v", kept, most, before, after)
	}
}

// What another client has written gives no number twice, and none that does not exist.
func TestSpreadAfterAWrongAssignment(t *testing.T) {
	before := map[Token][]int{1: {-1, 3, 1, 1, 99}, 2: {1, 0}, 7: {2}}
	after := map[Token][]int{}
	spread(4, before, []Token{1, 2}, after)
	if !slices.Equal(after[1], []int{1, 3}) || !slices.Equal(after[2], []int{0, 2}) || len(after) != 2 {
		t.Errorf("%v", after)
	}
}

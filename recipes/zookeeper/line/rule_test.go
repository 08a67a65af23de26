package line

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestWatched(t *testing.T) {
	ahead := []Entry{{"a", 1}, {"b", 2}, {"c", 3}}
	for _, tt := range []struct {
		strategy recipes.Strategy
		want     string
	}{
		{recipes.Herd, "a"},        // everybody watches the first
		{recipes.Predecessor, "c"}, // the largest j < i; two of the texts print "smallest"
	} {
		if got := watched(tt.strategy, Exclusive(ahead, Entry{"me", 4})); got.Name != tt.want {
			t.Errorf("%s watches %s, want %s", tt.strategy, got.Name, tt.want)
		}
	}
	if blockers := Exclusive(nil, Entry{"me", 4}); len(blockers) != 0 {
		t.Errorf("the first is blocked by %v", blockers)
	}
}

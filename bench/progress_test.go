package bench_test

import (
	"sync"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func TestProgressTellsOfSessionsAndOfTheLine(t *testing.T) {
	const n = 30
	e := experiment(new(fake.World))
	e.Recipes, e.Strategies, e.Contenders, e.Count = []load.Recipe{load.Lock}, []recipes.Strategy{recipes.Handoff}, []int{n}, 1
	for _, trial := range e.Trials() {
		var mu sync.Mutex
		calls, most := map[string]int{}, map[string]int{}
		e.Progress = func(what string, done, of int) {
			mu.Lock()
			defer mu.Unlock()
			if of != n {
				t.Errorf("%d of %d %s; want of %d", done, of, what, n)
			}
			calls[what]++
			most[what] = max(most[what], done)
		}
		if _, err := e.Run(t.Context(), trial); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"open", "in line"} {
			if calls[what] != n || most[what] != n {
				t.Errorf("%s: told %d times, up to %d %s; want %d", trial.Workload, calls[what], most[what], what, n)
			}
		}
	}
}

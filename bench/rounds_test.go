package bench_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func TestRoundsOfOtherRecipes(t *testing.T) {
	const n, rounds = 5, 3
	e := bench.Experiment{
		Recipes: load.Recipes(), Strategies: recipes.Strategies(), Contenders: []int{n},
		Workloads:  []load.Workload{load.Queue, load.Barrier, load.DoubleBarrier, load.Commit},
		Transports: []bench.Transport{{Name: "direct", Open: zookeeper.Open}},
		Count:      1, Rounds: rounds, Root: "/zkbench/rounds",
		Session: recipes.SessionConfig{Servers: []string{embedded(t).Addr()}},
	}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	trials := e.Trials()
	if len(trials) != 4 {
		t.Fatalf("%d trials; want one of each, whatever the recipes and strategies", len(trials))
	}
	for _, trial := range trials {
		r, err := e.Run(t.Context(), trial)
		if err != nil {
			t.Fatal(err)
		}
		operations, waits, services := int64(rounds), int64(0), int64(0)
		switch trial.Workload {
		case load.Queue:
			operations = rounds * (n / 2) * 10
			waits, services = operations, operations
		case load.Barrier:
			waits = rounds * (n - 1)
			if r.Counters.WatchEvents != waits {
				t.Errorf("%d watch events of a barrier; want one for each that waited, %d", r.Counters.WatchEvents, waits)
			}
		case load.DoubleBarrier:
			waits, services = rounds*n, rounds*n
		case load.Commit:
			waits, services = rounds*(n-1), rounds
		}
		if r.Operations != operations || r.Wait.TotalCount() != waits || r.Service.TotalCount() != services {
			t.Errorf("%s: %d operations, %d waits, %d services; want %d, %d, %d", r.Name(),
				r.Operations, r.Wait.TotalCount(), r.Service.TotalCount(), operations, waits, services)
		}
		if strings.Contains(r.Name(), "strategy") || string(r.Recipe) != string(r.Workload) {
			t.Errorf("%s has a strategy or a recipe that it does not use", r.Name())
		}
	}
	e.Contenders = []int{1}
	if err := e.Validate(); err == nil {
		t.Error("a barrier with nobody waiting was accepted")
	}
}

// A queue that gives an element to two consumers must not be measured.
func TestBrokenQueueIsNotMeasured(t *testing.T) {
	e := bench.Experiment{
		Recipes: load.Recipes(), Strategies: recipes.Strategies(), Contenders: []int{2},
		Workloads: []load.Workload{load.Queue}, Count: 1, Root: "/zkbench/rounds",
		Transports: []bench.Transport{{Name: "direct", Open: repeating}},
		Session:    recipes.SessionConfig{Servers: []string{embedded(t).Addr()}},
	}
	if _, err := e.Run(t.Context(), e.Trials()[0]); !errors.Is(err, load.ErrBroken) || !strings.Contains(err.Error(), "taken twice") {
		t.Errorf("%v; want that an element was taken twice", err)
	}
}

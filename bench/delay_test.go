package bench_test

import (
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// A handoff takes one round trip at least: the release, and the event that grants the next.
func TestADelayLiesBetweenSessionsAndServers(t *testing.T) {
	const delay = 10 * time.Millisecond
	server := embedded(t)
	e := experiment(new(fake.World))
	e.Recipes, e.Workloads, e.Strategies = []load.Recipe{load.Lock}, []load.Workload{load.Drain, load.Failover}, []recipes.Strategy{recipes.Handoff}
	e.Contenders, e.Transports, e.Count = []int{3}, []bench.Transport{{Name: "direct", Open: zookeeper.Open}}, 1
	e.Session = recipes.SessionConfig{Servers: []string{server.Addr()}, SessionTimeout: 4 * time.Second}
	e.Delays = []time.Duration{0, delay}
	seen := map[time.Duration]int{}
	for _, trial := range e.Trials() {
		r, err := e.Run(t.Context(), trial)
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Delay]++
		each := r.Elapsed / time.Duration(r.Operations)
		if r.Delay != trial.Delay || each < r.Delay {
			t.Errorf("trial with a delay of %v: the record has %v, and an operation took %v", trial.Delay, r.Delay, each)
		}
	}
	if seen[0] != 2 || seen[delay] != 2 {
		t.Errorf("trials by delay: %v; want 2 of each", seen)
	}
	e.Delays = []time.Duration{-1}
	if e.Validate() == nil {
		t.Error("a negative delay is taken")
	}
}

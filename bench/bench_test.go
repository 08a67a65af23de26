package bench_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

func experiment(t *testing.T) bench.Experiment {
	_, dial := zktest.Piped(t)
	return bench.Experiment{
		Recipes: []load.Recipe{load.Lock, load.Election}, Workloads: []load.Workload{load.Drain, load.Cycle},
		Strategies: recipes.Strategies(), Contenders: []int{1, 4},
		Transports: []bench.Transport{{Name: "direct", Open: dial.Open}},
		Count:      2, Seed: 7, Duration: 5 * time.Millisecond, Root: "/bench",
		Session: recipes.SessionConfig{Servers: []string{"server"}},
	}
}

func TestTrialsAreInterleavedBySeed(t *testing.T) {
	e := experiment(t)
	names := func(e bench.Experiment) (names []string) {
		for _, trial := range e.Trials() {
			names = append(names, record.Record{
				Recipe: trial.Recipe, Workload: trial.Workload, Strategy: trial.Strategy, Contenders: trial.Contenders,
			}.Name())
		}
		return names
	}
	first := names(e)
	if again := names(e); !reflect.DeepEqual(again, first) {
		t.Error("the same seed gave another order")
	}
	e.Seed++
	if other := names(e); reflect.DeepEqual(other, first) {
		t.Error("another seed gave the same order")
	}
	// Each half has each combination once.
	combinations := len(e.Recipes) * len(e.Workloads) * len(e.Strategies) * len(e.Contenders)
	if len(first) != 2*combinations {
		t.Fatalf("%d trials; want %d", len(first), 2*combinations)
	}
	for _, half := range [][]string{first[:combinations], first[combinations:]} {
		seen := map[string]bool{}
		for _, name := range half {
			seen[name] = true
		}
		if len(seen) != combinations {
			t.Errorf("one round has %d of %d combinations", len(seen), combinations)
		}
	}
}

func TestAscendingExperimentBeginsWithShortLines(t *testing.T) {
	e := experiment(t)
	e.Contenders, e.Ascending = []int{1, 9, 3, 5}, true
	trials := e.Trials()
	round := len(trials) / e.Count
	for i := 1; i < round; i++ {
		if trials[i].Contenders < trials[i-1].Contenders {
			t.Fatalf("trial %d of the first round has %d contenders, after %d", i+1, trials[i].Contenders, trials[i-1].Contenders)
		}
	}
	e.Ascending = false
	for i, trial := range e.Trials()[round:] {
		if trial.Contenders != trials[round+i].Contenders {
			t.Fatal("the second round has another order")
		}
	}
}

func TestServerFiguresAreDifferences(t *testing.T) {
	e := experiment(t)
	calls := 0.0
	e.Figures = func(context.Context) (map[string]float64, error) {
		calls++
		figures := map[string]float64{"packets": 100 * calls}
		if calls == 2 {
			figures["late"] = 1
		}
		return figures, nil
	}
	r := must.Get(e.Run(t.Context(), e.Trials()[0]))(t)
	if want := map[string]float64{"packets": 100}; !reflect.DeepEqual(r.Server, want) {
		t.Errorf("server figures %v; want %v", r.Server, want)
	}
	broken := errors.New("no answer")
	e.Figures = func(context.Context) (map[string]float64, error) { return nil, broken }
	if _, err := e.Run(t.Context(), e.Trials()[0]); !errors.Is(err, broken) {
		t.Errorf("%v; want the error of the figures", err)
	}
}

func TestFailureToOpenClosesTheOpenSessions(t *testing.T) {
	var opened []recipes.Client
	e := experiment(t)
	trial := e.Trials()[0]
	trial.Contenders = 3
	open, gate := trial.Transport.Open, make(chan struct{}, 1)
	trial.Transport.Open = func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
		gate <- struct{}{}
		defer func() { <-gate }()
		if len(opened) == 2 {
			return nil, recipes.ErrUnavailable
		}
		s, err := open(context.WithoutCancel(ctx), cfg)
		opened = append(opened, s)
		return s, err
	}
	if _, err := e.Run(t.Context(), trial); !errors.Is(err, recipes.ErrUnavailable) {
		t.Errorf("%v; want ErrUnavailable", err)
	}
	for i, s := range opened {
		if s.State() != recipes.Lost {
			t.Errorf("session %d is still open", i)
		}
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*bench.Experiment){
		"no recipes":         func(e *bench.Experiment) { e.Recipes = nil },
		"no workloads":       func(e *bench.Experiment) { e.Workloads = nil },
		"no strategies":      func(e *bench.Experiment) { e.Strategies = nil },
		"no contenders":      func(e *bench.Experiment) { e.Contenders = nil },
		"no transports":      func(e *bench.Experiment) { e.Transports = nil },
		"0 contenders":       func(e *bench.Experiment) { e.Contenders = []int{3, 0} },
		"count is 0":         func(e *bench.Experiment) { e.Count = 0 },
		"must not be negati": func(e *bench.Experiment) { e.Hold = -1 },
		"root":               func(e *bench.Experiment) { e.Root = "bench" },
	} {
		e := experiment(t)
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// parts returns two records of one trial, from machines with that many processors.
func parts(t *testing.T, first, second int) []record.Record {
	t.Helper()
	e := experiment(t)
	var all []record.Record
	for _, procs := range []int{first, second} {
		r := must.Get(e.Run(t.Context(), e.Trials()[0]))(t)
		r.Procs = procs
		all = append(all, r)
	}
	return all
}

func TestMachinesOfDifferentSizesMeasureTogether(t *testing.T) {
	for _, order := range [][2]int{{8, 4}, {4, 8}} {
		whole, err := bench.Merge(parts(t, order[0], order[1]))
		if err != nil || whole.Procs != 4 {
			t.Errorf("of machines with %v processors: GOMAXPROCS %d, %v; want 4", order, whole.Procs, err)
		}
	}
}

func TestProcessorTimeOfAllPartsIsAdded(t *testing.T) {
	all := parts(t, 4, 4)
	all[0].Client = record.Client{CPU: 1, Other: new(time.Duration(20)), GC: 5}
	all[1].Client = record.Client{CPU: 2, Other: new(time.Duration(40)), GC: 3}
	if c := must.Get(bench.Merge(all))(t).Client; c.CPU != 3 || c.Other == nil || *c.Other != 60 || c.GC != 5 {
		t.Errorf("%+v", c)
	}
}

func TestPartsOfDifferentTrialsAreNotAdded(t *testing.T) {
	all := parts(t, 4, 4)
	all[1].Contenders++
	if _, err := bench.Merge(all); err == nil || !strings.Contains(err.Error(), "worker 2 measured trial 1") {
		t.Errorf("%v; want an error that names the parts", err)
	}
}

func TestProgressCountsSessionsAndTheLine(t *testing.T) {
	const n = 30
	e := experiment(t)
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
				t.Errorf("%s: %d calls, up to %d %s; want %d", trial.Workload, calls[what], most[what], what, n)
			}
		}
	}
}

// A handoff takes at least one round trip: the release, and the event for the successor.
func TestDelayIsAddedToEachRoundTrip(t *testing.T) {
	const delay = 10 * time.Millisecond
	server := zktest.Embedded(t)
	e := experiment(t)
	e.Recipes, e.Workloads, e.Strategies = []load.Recipe{load.Lock}, []load.Workload{load.Drain, load.Failover}, []recipes.Strategy{recipes.Handoff}
	e.Contenders, e.Transports, e.Count = []int{3}, []bench.Transport{{Name: "direct", Open: zookeeper.Open}}, 1
	e.Session.Servers = []string{server.Addr()}
	e.Delays = []time.Duration{0, delay}
	seen := map[time.Duration]int{}
	for _, trial := range e.Trials() {
		r := must.Get(failover(t, e, trial))(t)
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
		t.Error("a negative delay was accepted")
	}
}

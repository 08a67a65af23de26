package bench_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/race"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestHarnessCostsLittle compares the turns of a lock that does nothing with the fastest real
// ones, on a server in the same process. It uses the best of several trials of each, which a busy
// machine disturbs least.
func TestHarnessCostsLittle(t *testing.T) {
	server := zktest.Embedded(t)
	fastest := func(open recipes.Opener) time.Duration {
		e := experiment(t)
		e.Recipes, e.Workloads, e.Strategies = []load.Recipe{load.Lock}, []load.Workload{load.Drain}, []recipes.Strategy{recipes.Predecessor}
		e.Contenders, e.Transports, e.Count = []int{1}, []bench.Transport{{Name: "direct", Open: open}}, 9
		e.Session = recipes.SessionConfig{Servers: []string{server.Addr()}}
		var turns []time.Duration
		for _, trial := range e.Trials() {
			r := must.Get(e.Run(t.Context(), trial))(t)
			turns = append(turns, r.Elapsed/time.Duration(r.Operations))
		}
		return slices.Min(turns)
	}
	noop, real := fastest(free), fastest(zookeeper.Open)
	t.Logf("a turn takes %v of a lock that does nothing, %v of the fastest real one", noop, real)
	if noop > real/20 {
		// Under the race detector both are slow, the harness more so.
		if race.Enabled {
			t.Skip("the race detector slows the harness down")
		}
		t.Errorf("the harness takes %v a turn; want under 5 %% of %v", noop, real)
	}
}

// free opens a session whose lock does nothing.
func free(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	s, err := zookeeper.Open(ctx, cfg)
	return freeSession{s}, err
}

type freeSession struct{ recipes.Client }

func (freeSession) Lock(_ string, cfg recipes.LockConfig) (recipes.Lock, error) {
	return &freeLock{joined: cfg.Joined}, nil
}

type freeLock struct {
	recipes.Lock
	joined func(recipes.Place)
	turns  recipes.Token
}

func (l *freeLock) Acquire(context.Context) (recipes.Hold, error) {
	l.turns++
	l.joined(recipes.Place{})
	return freeHold{token: l.turns}, nil
}

type freeHold struct {
	recipes.Hold
	token recipes.Token
}

func (h freeHold) Token() recipes.Token        { return h.token }
func (freeHold) Release(context.Context) error { return nil }

func TestRoundsOfOtherRecipes(t *testing.T) {
	const n, rounds = 5, 3
	e := bench.Experiment{
		Recipes: []load.Recipe{load.Lock, load.Election}, Strategies: recipes.Strategies(), Contenders: []int{n},
		Workloads:  []load.Workload{load.Queue, load.Barrier, load.DoubleBarrier, load.Commit},
		Transports: []bench.Transport{{Name: "direct", Open: zookeeper.Open}},
		Count:      1, Rounds: rounds, Root: "/zkbench/rounds",
		Session: recipes.SessionConfig{Servers: []string{zktest.Embedded(t).Addr()}},
	}
	must.Do(t, e.Validate())
	trials := e.Trials()
	if len(trials) != 4 {
		t.Fatalf("%d trials; want one of each, whatever the recipes and strategies", len(trials))
	}
	for _, trial := range trials {
		r := must.Get(e.Run(t.Context(), trial))(t)
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
		t.Error("a barrier without a waiting session was accepted")
	}
}

// A queue that gives an element to two consumers is a violation, not a measurement.
func TestBrokenQueueIsNotMeasured(t *testing.T) {
	e := bench.Experiment{
		Recipes: []load.Recipe{load.Lock, load.Election}, Strategies: recipes.Strategies(), Contenders: []int{2},
		Workloads: []load.Workload{load.Queue}, Count: 1, Root: "/zkbench/rounds",
		Transports: []bench.Transport{{Name: "direct", Open: repeating}},
		Session:    recipes.SessionConfig{Servers: []string{zktest.Embedded(t).Addr()}},
	}
	if _, err := e.Run(t.Context(), e.Trials()[0]); !errors.Is(err, load.ErrBroken) || !strings.Contains(err.Error(), "taken twice") {
		t.Errorf("%v; want that an element was taken twice", err)
	}
}

// repeating opens sessions whose queues deliver each element twice.
func repeating(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
	s, err := zookeeper.Open(ctx, cfg)
	return repeatingSession{s}, err
}

type repeatingSession struct{ recipes.Client }

func (s repeatingSession) Queue(path string, cfg recipes.QueueConfig) (recipes.Queue, error) {
	q, err := s.Client.Queue(path, cfg)
	return &repeatingQueue{Queue: q}, err
}

type repeatingQueue struct {
	recipes.Queue
	last atomic.Pointer[recipes.Element]
}

func (q *repeatingQueue) Take(ctx context.Context) (recipes.Element, error) {
	if last := q.last.Swap(nil); last != nil {
		return *last, nil
	}
	e, err := q.Queue.Take(ctx)
	q.last.Store(&e)
	return e, err
}

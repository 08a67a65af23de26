package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/slo"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/validity"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/internal/zkserver"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// planted makes the grants of a session take one millisecond for each contender in line.
func planted(srv *zkserver.Server) func(recipes.Client) recipes.Client {
	return func(s recipes.Client) recipes.Client {
		return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
			hold, err := l.Acquire(ctx)
			// A little less than a millisecond, because a histogram rounds. By the end of this
			// sleep the last holder is in line again.
			time.Sleep(900 * time.Microsecond)
			time.Sleep(time.Duration(len(zktest.Layout(srv, l.Path()))-1) * time.Millisecond)
			return hold, err
		}}
	}
}

// search returns the search and the prober of slo, with sessions from opener.
func search(over string, limit time.Duration, open recipes.Opener, w load.Workload) (sloSettings, bench.Experiment) {
	s := sloSettings{over: over, search: slo.Search{From: 2, To: 1000, Limit: float64(limit), Probes: 3, Precision: 1e-9}}
	return s, bench.Experiment{
		Recipes: []load.Recipe{load.Lock}, Workloads: []load.Workload{w}, Strategies: []recipes.Strategy{recipes.Predecessor},
		Contenders: []int{10}, Transports: []bench.Transport{{Name: transport.Direct, Open: open}}, Count: 1, Root: "/slo",
		Duration: 2 * time.Second, Rate: 1, Arrivals: load.Constant, Session: recipes.SessionConfig{Servers: []string{"server"}},
	}
}

// In virtual time the search finds exactly the planted edge.
func TestSearchFindsThePlantedContenders(t *testing.T) {
	for _, edge := range []int{3, 37, 64} {
		synctest.Test(t, func(t *testing.T) {
			srv, dial := zktest.Piped(t)
			s, e := search(overContenders, time.Duration(edge)*time.Millisecond, with(planted(srv), dial.Open), load.Cycle)
			var records []record.Record
			r, err := s.search.Run(t.Context(), command{stderr: io.Discard}.prober(s, e, &records))
			if err != nil || r.LastPass != edge || r.FirstFail != edge+1 || len(records) == 0 {
				t.Errorf("last pass %d, first fail %d, %v; want %d and one more", r.LastPass, r.FirstFail, err, edge)
			}
		})
	}
}

// Holds of 10 ms allow a hundred acquisitions a second. At a slightly higher rate it takes two
// seconds until acquisitions wait for 50 ms.
func TestSearchFindsThePlantedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := zktest.Piped(t)
		s, e := search(overRate, 50*time.Millisecond, dial.Open, load.Open)
		e.Hold = 10 * time.Millisecond
		var records []record.Record
		r, err := s.search.Run(t.Context(), command{stderr: io.Discard}.prober(s, e, &records))
		if err != nil || r.LastPass < 100 || r.LastPass > 103 || r.FirstFail != r.LastPass+1 {
			t.Errorf("last pass %d, first fail %d, %v; want 100 to 103, and one more", r.LastPass, r.FirstFail, err)
		}
	})
}

// Contenders that an overloaded probe has left in line would delay the next probe.
func TestProbesThatAreMissedHavePathsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := zktest.Piped(t)
		var paths sync.Map
		ungranting := func(s recipes.Client) recipes.Client {
			return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
				paths.Store(l.Path(), true)
				<-ctx.Done() // no contender is granted
				return nil, context.Cause(ctx)
			}}
		}
		s, e := search(overRate, time.Second, with(ungranting, dial.Open), load.Open)
		e.Contenders = []int{1}
		var records []record.Record
		r, err := s.search.Run(t.Context(), command{stderr: io.Discard}.prober(s, e, &records))
		n := 0
		paths.Range(func(any, any) bool { n++; return true })
		if err != nil || r.FirstFail != 2 || n != 2 {
			t.Errorf("first fail %d, probes at %d paths, %v; want 2, at one path each", r.FirstFail, n, err)
		}
	})
}

// A probe is repeated, with a message, if zkbench itself was the limit. The last repetition returns an error.
func TestInvalidProbesAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, dial := zktest.Piped(t)
		s, e := search(overRate, time.Second, dial.Open, load.Open)
		e.Check = validity.Limits{CPU: 1e-12}.Check // every running process exceeds this
		var said bytes.Buffer
		var records []record.Record
		_, err := s.search.Run(t.Context(), command{stderr: &said}.prober(s, e, &records))
		if err == nil || !strings.Contains(err.Error(), "zkbench itself was the limit: the load generator took") {
			t.Errorf("%v; want that the probe says nothing", err)
		}
		if n := strings.Count(said.String(), "is repeated, because zkbench itself was the limit"); n != maxTries-1 || len(records) != maxTries {
			t.Errorf("said %d times of %d records:\n%s", n, len(records), said.String())
		}
	})
}

// An interrupted search writes its results so far, and the number of its trials.
func TestInterruptedSearchWritesItsResults(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	interrupting := func(context.Context, recipes.SessionConfig) (recipes.Client, error) {
		cancel()
		return nil, ctx.Err()
	}
	file := filepath.Join(t.TempDir(), "records.jsonl")
	// Two probes of two contenders, and one of four.
	code, stdout, stderr := zkbench(ctx, after(2*2+4, zookeeper.Open, interrupting),
		"slo", "-under", "1h", "-over", "contenders", "-duration", "5ms", "-warmup", "0s", "-record", file)
	if code != exit.Interrupted || !strings.Contains(stdout, "last pass: contenders 2") || !strings.Contains(stderr, "interrupted after 3 trials") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout, stderr)
	}
	if runs, err := readRuns(file); err != nil || len(runs[0].Records) != 3 {
		t.Errorf("%+v, %v; want 3 records", runs, err)
	}
}

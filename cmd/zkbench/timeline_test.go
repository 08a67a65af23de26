package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/testing/ensembletest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// TestATimelineOnThreeRealServers kills the leader and a follower, and cuts off the holder. The
// run fails if the lock is broken. If the machine is too busy to grant anything, or to recover
// between two faults, the test repeats with twice the times.
func TestATimelineOnThreeRealServers(t *testing.T) {
	t.Parallel()
	e := ensembletest.Start(t, ensembletest.Quick(3))
	for slower := time.Duration(1); ; slower *= 2 {
		r, modes, err := timelineOn(t, e, slower)
		must.Do(t, e.WaitServing(t.Context())) // Run returns when both serve again
		if err != nil && slower <= 8 && isTooBusy(err.Error()) {
			continue
		}
		must.Do(t, err)
		faults := report.Faults([]record.Record{r}).Rows
		recovered := len(r.Timeline.Faults) == 3 && !slices.ContainsFunc(r.Timeline.Faults, func(o timeline.Outcome) bool { return !o.Recovered })
		if want := []ensemble.Mode{ensemble.Leader, ensemble.Follower}; !recovered || !slices.Equal(modes, want) {
			t.Logf("%d times slower: %q", slower, faults)
			if slower > 8 {
				t.Fatalf("no recovery, however long the timeline; the killed servers were %v, want %v", modes, want)
			}
			continue
		}
		holder := r.Timeline.Faults[2]
		if holder.Fault.Victim != timeline.Holder || holder.Lost == 0 || holder.Gap.Longest < slower*time.Second/2 {
			t.Errorf("the holder was cut off: %q; want a lost session, and no grant for a quarter of its timeout, which the session was proved to last", faults)
		}
		if seconds := len(r.Timeline.Seconds); seconds != int(slower*14) {
			t.Errorf("%d seconds; want %d", seconds, slower*14)
		}
		t.Logf("%q", faults)
		return
	}
}

// isTooBusy reports whether a run failed because the machine is too busy.
func isTooBusy(failure string) bool { return strings.Contains(failure, "nothing was granted within") }

// timelineOn runs a timeline. modes are the roles of the servers when they were killed.
func timelineOn(t *testing.T, e *ensemble.Ensemble, slower time.Duration) (r record.Record, modes []ensemble.Mode, err error) {
	t.Helper()
	x := bench.Experiment{
		Recipes: []load.Recipe{load.Lock}, Workloads: []load.Workload{load.Timeline}, Strategies: []recipes.Strategy{recipes.Handoff},
		Contenders: []int{5}, Transports: []bench.Transport{{Name: "direct", Open: zookeeper.Open}}, Count: 1,
		Root: fmt.Sprintf("/timeline-%d", slower), Duration: slower * 14 * time.Second, Hold: 10 * time.Millisecond,
		Session: recipes.SessionConfig{Servers: e.Addrs(), SessionTimeout: slower * 2 * time.Second},
		Faults: []timeline.Fault{
			{Victim: timeline.Leader, At: slower * time.Second, Restart: time.Second},
			{Victim: timeline.Follower, At: slower * 6 * time.Second, Restart: time.Second},
			{Victim: timeline.Holder, At: slower * 9 * time.Second},
		},
		Server: func(ctx context.Context, v timeline.Victim) (timeline.Server, error) {
			s, err := servers.Server{Ensemble: e}.Victim(ctx, v)
			if err != nil {
				return nil, err
			}
			mode, _ := s.(*ensemble.Server).Mode(ctx) // "" if it serves no client now
			modes = append(modes, mode)
			return s, nil
		},
	}
	must.Do(t, x.Validate())
	r, err = x.Run(t.Context(), x.Trials()[0])
	return r, modes, err
}

// A server without an ensemble leads, and is never killed as a follower.
func TestTheLeaderIsNoFollower(t *testing.T) {
	t.Parallel()
	s := servers.Server{Ensemble: ensembletest.Shared(t)}
	if victim, err := s.Victim(t.Context(), timeline.Leader); err != nil || victim != s.Ensemble.Server(0) {
		t.Errorf("the leader is %v, %v", victim, err)
	}
	if victim, err := s.Victim(t.Context(), timeline.Follower); err == nil {
		t.Errorf("the follower of a single server is %v", victim)
	}
}

// Both ways to give the faults have the same effect. A server without an ensemble counts as its
// leader.
func TestTheServerOfATimelineIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	ensembletest.Require(t)
	for slower := time.Duration(1); ; slower *= 2 {
		file := filepath.Join(t.TempDir(), "records.jsonl")
		code, _, stderr := whole(t, "run", "-ensemble", "1", "-timeline", "-fault", "leader@1s:restart=100ms",
			"-duration", (slower * 8 * time.Second).String(), "-contenders", "3", "-hold", "10ms", "-record", file)
		if code != exit.OK && slower <= 8 && isTooBusy(stderr) {
			continue
		}
		if code != exit.OK {
			t.Fatalf("exit code %d:\n%s", code, stderr)
		}
		f := must.Get(os.Open(file))(t)
		defer f.Close()
		killed := must.Get(record.Read(f))(t)[0].Records[0].Timeline.Faults[0]
		switch {
		case killed.Recovered && killed.Back > killed.Began && killed.Gap.Longest > 0 && strings.Contains(stderr, "leader killed"):
			return
		case slower > 8:
			t.Fatalf("%+v; want a server that was killed and serves again:\n%s", killed, stderr)
		}
	}
}

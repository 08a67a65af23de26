package bench_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// The holder cannot reach the server until its session is lost. Its contender then opens another
// one through the same relay. There is no other contender, so each grant after a fault shows that
// it has come back. All sessions are closed at the end. If the machine is too busy to recover in
// time, the test repeats with twice the times.
func TestAHolderIsCutOffAndComesBack(t *testing.T) {
	for slower := time.Duration(1); ; slower *= 2 {
		var mu sync.Mutex
		var sessions []recipes.Client
		e, _ := failovers(t, func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
			s, err := zookeeper.Open(ctx, cfg)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				sessions = append(sessions, s)
			}
			return s, err
		})
		e.Contenders = []int{1}
		e.Workloads, e.Recipes, e.Strategies = []load.Workload{load.Timeline}, []load.Recipe{load.Lock}, []recipes.Strategy{recipes.Handoff}
		e.Duration, e.Session.SessionTimeout = slower*4*time.Second, slower*500*time.Millisecond
		e.Faults = []timeline.Fault{{Victim: timeline.Holder, At: slower * 500 * time.Millisecond}, {Victim: timeline.Holder, At: slower * 2 * time.Second}}
		must.Do(t, e.Validate())
		r := must.Get(e.Run(t.Context(), e.Trials()[0]))(t)
		for _, s := range sessions {
			if s.Err() == nil {
				t.Errorf("session %#x was not closed", s.ID())
			}
		}
		var lost, grants int64
		for _, s := range r.Timeline.Seconds {
			lost, grants = lost+s.Lost, grants+s.Grants
		}
		recovered := len(r.Timeline.Faults) == 2
		for _, f := range r.Timeline.Faults {
			recovered = recovered && f.Recovered
			// At the grant, the session was proved to last for a quarter of its timeout.
			if f.Recovered && f.Gap.Longest < slower*125*time.Millisecond {
				t.Errorf("the next grant came %v after the holder was cut off", f.Gap.Longest)
			}
		}
		if !strings.Contains(r.Name(), "/faults=holder@"+(slower*500*time.Millisecond).String()+",holder@") {
			t.Errorf("the name %s has no faults", r.Name())
		}
		if grants != r.Operations {
			t.Errorf("%d grants in all seconds; want %d", grants, r.Operations)
		}
		if recovered && lost >= 2 {
			return
		}
		t.Logf("%d times slower: %+v, %d sessions lost", slower, r.Timeline.Faults, lost)
		if slower > 16 {
			t.Fatal("no recovery, however long the timeline")
		}
	}
}

func TestATimelineHasRoomForItsFaults(t *testing.T) {
	e, _ := failovers(t, zookeeper.Open)
	e.Workloads, e.Duration = []load.Workload{load.Timeline}, 10*time.Second
	e.Faults = []timeline.Fault{{Victim: timeline.Leader, At: 8 * time.Second, Restart: 2 * time.Second}}
	if err := e.Validate(); err == nil || !strings.Contains(err.Error(), "ends before its last fault has, at 10s") {
		t.Errorf("%v", err)
	}
	e.Duration++
	must.Do(t, e.Validate())
	if _, err := e.Run(t.Context(), e.Trials()[0]); err == nil || !strings.Contains(err.Error(), "Load.Server or Load.Kill is nil") {
		t.Errorf("without a server to kill: %v", err)
	}
	broken := errors.New("no server")
	e.Server = func(context.Context, timeline.Victim) (timeline.Server, error) { return nil, broken }
	e.Duration, e.Faults[0] = time.Second, timeline.Fault{Victim: timeline.Leader, At: time.Millisecond, Restart: time.Millisecond}
	if _, err := e.Run(t.Context(), e.Trials()[0]); !errors.Is(err, broken) {
		t.Errorf("%v; want the error of the hook", err)
	}
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
)

// timelineDefaults are the defaults of other flags with -timeline.
var timelineDefaults = map[string]string{"recipe": "lock", "workload": "timeline", "strategy": "handoff", "contenders": "10", "count": "1"}

// calm is how long a timeline goes on after its last fault, by default.
const calm = 10 * time.Second

func (s *settings) addTimeline(f *flag.FlagSet) {
	f.BoolVar(&s.timeline, "timeline", false, "run a closed loop for -duration, and record the grants, waits and handoffs of each second.\nOther defaults: -recipe lock -strategy handoff -contenders 10 -count 1, -session-timeout 4s,\nand a -duration of 10s after the last fault")
	f.Var(list[timeline.Fault]{&s.Faults, timeline.Parse}, "fault", "`list` of faults of -timeline: leader@10s kills the leader then, follower@20s a follower;\nholder@30s cuts off the holder of the lock until its session is lost. A killed server is\nstarted again 5s later, or as in leader@10s:restart=2s")
}

// defaultTimeline sets the flags that -timeline has other defaults for.
func (s *settings) defaultTimeline(f *flag.FlagSet) error {
	given := given(f)
	switch {
	case len(s.Faults) > 0 && !s.timeline:
		return errors.New("-fault needs -timeline")
	case !s.timeline:
		return nil
	}
	for _, name := range []string{"workload", "preset", "against", "join", "warmup"} {
		if given[name] {
			return fmt.Errorf("-timeline is a closed loop of this process without a warm-up, and cannot be combined with -%s", name)
		}
	}
	if !given["duration"] {
		s.Duration = timeline.End(s.Faults) + calm
	}
	return setDefaults(f, timelineDefaults)
}

// checkTimeline orders the faults. It returns an error if they are not possible.
func (s *settings) checkTimeline() error {
	if !slices.Contains(s.Workloads, load.Timeline) {
		return nil
	}
	if !s.timeline {
		return errors.New("-workload timeline is what zkbench run -timeline runs; give that flag alone")
	}
	if err := timeline.Order(s.Faults); err != nil {
		return err
	}
	for _, f := range s.Faults {
		switch {
		case f.Server() && s.ensemble == 0:
			return fmt.Errorf("-fault %v kills a server, and zkbench kills only servers that it has started: give -ensemble 3 (-fault holder@10s needs no such servers)", f)
		case f.Victim == timeline.Follower && s.ensemble == 1:
			return fmt.Errorf("-fault %v: a single server has no follower; give -ensemble 3", f)
		case !f.Server() && slices.Contains(s.via, byRelay):
			return fmt.Errorf("-fault %v cuts off a relay of its own, and cannot be combined with -via relay", f)
		}
	}
	switch end := timeline.End(s.Faults); {
	case s.Duration < time.Second || s.Duration > timeline.Longest:
		return fmt.Errorf("-duration %v: a timeline has 1s to %v", s.Duration, timeline.Longest)
	case s.Duration <= end:
		return fmt.Errorf("-duration %v: the last fault ends at %v; give more, or leave out -duration", s.Duration, end)
	}
	return nil
}

// cutsOff reports whether each session has a relay of its own, by which it can be cut off.
func (s *settings) cutsOff() bool {
	return slices.Contains(s.Workloads, load.Failover) || slices.ContainsFunc(s.Faults, func(f timeline.Fault) bool { return !f.Server() })
}

// victim returns the server that a fault kills: the leader, or the first follower.
func (s server) victim(ctx context.Context, v timeline.Victim) (timeline.Server, error) {
	leader, err := s.ensemble.Leader(ctx)
	if err != nil || v == timeline.Leader {
		return leader, err
	}
	others := s.ensemble.Servers()
	i := slices.IndexFunc(others, func(o *ensemble.Server) bool { return o != leader && o.Pid() != 0 })
	if i < 0 {
		return nil, errors.New("there is no follower")
	}
	return others[i], nil
}

// sayFaults writes what followed the faults of timelines.
func (c command) sayFaults(records []record.Record) error {
	faults := report.Faults(records)
	if len(faults.Rows) == 0 {
		return nil
	}
	_, err := fmt.Fprint(c.stderr, "\n", table.Align(append([][]string{faults.Head}, faults.Rows...), 0))
	return err
}

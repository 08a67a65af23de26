package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// A continued run repeats invalid trials, unless none of their combination was ever valid.
func TestCombinationThatIsNeverValidIsLeftOut(t *testing.T) {
	trial := func(contenders int, invalid ...string) record.Record {
		return record.Record{Recipe: "lock", Workload: "drain", Contenders: contenders, Transport: transport.Direct, Invalid: invalid}
	}
	const busy = "the generator was busy"
	runs := []record.Run{{Records: []record.Record{
		trial(2), trial(2, busy), trial(2, busy), trial(2, busy),
		trial(5, busy), trial(5, busy),
		trial(10, busy), trial(10, busy), trial(10, busy),
	}}}
	p := must.Get(newHistory(runs, record.Environment{}, 0))(t)
	if yes, why := p.skip(trial(2)); !yes || why != "" {
		t.Errorf("a valid one is made again: %q", why)
	}
	for _, n := range []int{2, 5} {
		if yes, why := p.skip(trial(n)); yes {
			t.Errorf("with %d contenders: %q", n, why)
		}
	}
	if yes, why := p.skip(trial(10)); !yes || !strings.Contains(why, "none of 3 trials in the file is valid") {
		t.Errorf("%v, %q", yes, why)
	}
	if yes, why := p.skip(trial(10)); !yes || why != "" {
		t.Errorf("it is reported again: %q", why)
	}
}

// The command that a plan names is valid, and records the same combination.
func TestMissingRecordsAreNamedByTheirCommand(t *testing.T) {
	cycles := &plan.Model{Workload: load.Cycle}
	details := func(servers string) map[string]string { return map[string]string{"-servers": servers} }
	for want, m := range map[string]fitted{
		"-servers zk1:2181,zk2:2181/app -recipe lock -workload cycle -contenders":  {Model: cycles, servers: 2, details: details("zk1:2181,zk2:2181/app")},
		"-ensemble 3 -recipe lock -workload drain -contenders":                     {Model: new(plan.Model), servers: 3, details: details("none")},
		"-ensemble 3 -recipe lock -workload cycle -contenders":                     {Model: cycles, servers: 3, details: details("zk1:2181; x")},
		"-ensemble 1 -recipe lock -workload drain -contenders":                     {Model: new(plan.Model)},
		"-embedded -recipe lock -workload cycle -hold 5ms -via plugin -contenders": {Model: cycles, servers: 1, embedded: true, hold: 5 * time.Millisecond, transport: transport.Plugin},
		"-ensemble 1 -recipe lock -workload cycle -contenders":                     {Model: cycles, servers: 1, transport: transport.Direct},
	} {
		command := command{transports: transport.All}
		said := sweepCommand(m, "")
		args := strings.Fields(said)
		if !strings.Contains(said, want) || args[0] != "zkbench" || args[1] != "sweep" {
			t.Fatalf("%q has no %q", said, want)
		}
		s := defaults()
		flags := command.sweepFlags(&s)
		flags.SetOutput(io.Discard)
		if err := flags.Parse(args[2:]); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		if err := s.check(given(flags)); err != nil || s.Hold != m.hold {
			t.Errorf("%s: %v, hold %v", said, err, s.Hold)
		}
	}
}

// Of two trials, the median is between them.
func TestPlanAnswersWithTheMedianTrial(t *testing.T) {
	var run record.Run
	for _, took := range []time.Duration{time.Second, 3 * time.Second} {
		r := record.Record{Recipe: load.Lock, Workload: load.Failover, Contenders: 2, Transport: transport.Direct}
		r.Operations, r.Elapsed, r.Handoff = 1, took, histogram.New()
		histogram.Record(r.Handoff, took)
		many := r
		many.Workload, many.Lines, many.Operations = load.Many, 5, 300
		run.Records = append(run.Records, r, many)
	}
	var out strings.Builder
	s := planSettings{watches: 1, lineRate: 10}
	s.failovers(&out, []record.Run{run})
	s.answerLines(&out, []record.Run{run})
	for _, want := range []string{"held for 2s (1s to 3s in 2 trials)", "70% of the 200 handoffs/s that 5 lines made"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The command for records of independent lines has the servers of the records that there are.
func TestMissingLinesAreRecordedOnTheSameServers(t *testing.T) {
	for want, env := range map[string]record.Environment{
		"zkbench run -servers zk1:2181,zk2:2181/app -workload many": {
			Server: record.Server{Servers: 2, Mode: "ensemble"}, Details: map[string]string{"-servers": "zk1:2181,zk2:2181/app"},
		},
		"zkbench run -ensemble 3 -workload many": {Server: record.Server{Servers: 3, Mode: "ensemble"}, Details: map[string]string{"-servers": "none"}},
		"zkbench run -embedded -workload many":   {Server: record.Server{Servers: 1, Mode: "embedded"}},
	} {
		var out strings.Builder
		if (planSettings{lineRate: 10}).answerLines(&out, []record.Run{{Environment: env}}) || !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestCeilingEstimatesLongLines(t *testing.T) {
	trial := func(s recipes.Strategy, n int, took time.Duration) record.Record {
		r := record.Record{Recipe: load.Lock, Workload: load.Drain, Strategy: s, Contenders: n, Transport: "direct"}
		r.Elapsed = took
		return r
	}
	c := ceiling{limit: 20 * time.Second}
	if _, yes := c.tooLong(trial(recipes.Herd, 1000, 0)); yes {
		t.Error("too long, and nothing is known")
	}
	for _, n := range []int{50, 100, 200} {
		c.add(trial(recipes.Herd, n, time.Duration(n*n*n)*time.Microsecond))
		c.add(trial(recipes.Predecessor, n, time.Duration(n)*time.Millisecond))
	}
	for _, tt := range []struct {
		strategy recipes.Strategy
		n        int
		want     time.Duration
		yes      bool
	}{
		{recipes.Herd, 200, 8 * time.Second, false},
		{recipes.Herd, 500, 125 * time.Second, true},
		{recipes.Predecessor, 1000, time.Second, false},
	} {
		got, yes := c.tooLong(trial(tt.strategy, tt.n, 0))
		if yes != tt.yes || got < tt.want*99/100 || got > tt.want*101/100 {
			t.Errorf("%s of %d: %v, too long: %v; want %v, %v", tt.strategy, tt.n, got, yes, tt.want, tt.yes)
		}
	}
	// A level that took too long is not repeated.
	c.add(trial(recipes.Predecessor, 1000, time.Minute))
	if _, yes := c.tooLong(trial(recipes.Predecessor, 1000, 0)); !yes {
		t.Error("what took a minute is not too long")
	}
	// It is repeated if another trial of that level was fast enough.
	c.add(trial(recipes.Predecessor, 1000, time.Second))
	if got, yes := c.tooLong(trial(recipes.Predecessor, 1000, 0)); yes {
		t.Errorf("what took %v is too long", got)
	}
}

// A closed loop is measured for the same time with a thousand contenders as with two.
func TestCeilingLeavesOutNothingThatDoesNotGrow(t *testing.T) {
	trial := func(w load.Workload, n int) record.Record {
		r := record.Record{Recipe: load.Lock, Workload: w, Strategy: recipes.Herd, Contenders: n, Transport: "direct"}
		r.Elapsed = 2*time.Second + time.Duration(n)*time.Microsecond
		return r
	}
	for _, w := range []load.Workload{load.Cycle, load.Open, load.Many, load.Failover} {
		c := ceiling{limit: 3 * time.Second}
		for _, n := range []int{2, 5, 10} {
			c.add(trial(w, n))
			if expected, yes := c.tooLong(trial(w, 1000)); yes {
				t.Errorf("%s: after %d contenders a thousand are taken to need %v", w, n, expected)
			}
		}
	}
}

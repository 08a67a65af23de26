package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
)

// A run that goes on makes trials again that were invalid, unless none was ever valid.
func TestWhatIsNeverValidIsNotTriedForEver(t *testing.T) {
	trial := func(contenders int, invalid ...string) record.Record {
		return record.Record{Recipe: "lock", Workload: "drain", Contenders: contenders, Transport: direct, Invalid: invalid}
	}
	const busy = "the generator was busy"
	runs := []record.Run{{Records: []record.Record{
		trial(2), trial(2, busy), trial(2, busy), trial(2, busy),
		trial(5, busy), trial(5, busy),
		trial(10, busy), trial(10, busy), trial(10, busy),
	}}}
	p, err := newHistory(runs, record.Server{}, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("it is told again: %q", why)
	}
}

// What a plan says to run is a command that zkbench takes, for records of the same kind.
func TestMissingRecordsAreNamedByTheirCommand(t *testing.T) {
	cycles := &plan.Model{Workload: load.Cycle}
	for want, m := range map[string]fitted{
		"-ensemble 1 -recipe lock -workload drain -contenders":                     {Model: new(plan.Model)},
		"-ensemble 3 -recipe lock -workload cycle -contenders":                     {Model: cycles, servers: 3},
		"-embedded -recipe lock -workload cycle -hold 5ms -via plugin -contenders": {Model: cycles, servers: 1, embedded: true, hold: 5 * time.Millisecond, transport: plugin},
		"-ensemble 1 -recipe lock -workload cycle -contenders":                     {Model: cycles, servers: 1, transport: direct},
	} {
		command := command{transports: transports}
		said := sweepCommand(m, "")
		args := strings.Fields(said)
		if !strings.Contains(said, want) || args[0] != "zkbench" || args[1] != "sweep" {
			t.Fatalf("%q has no %q", said, want)
		}
		s := command.defaults()
		flags := s.sweepFlags()
		flags.SetOutput(io.Discard)
		if err := flags.Parse(args[2:]); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		if err := s.check(given(flags)); err != nil || s.hold != m.hold {
			t.Errorf("%s: %v, hold %v", said, err, s.hold)
		}
	}
}

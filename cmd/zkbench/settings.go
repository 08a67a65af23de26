package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/list"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/output"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// settings are the flags of run, sweep and slo.
type settings struct {
	bench.Experiment
	set *flag.FlagSet

	via            []string
	sessionTimeout time.Duration

	servers.Flags
	show
	join joining
	otherBuild

	resume   bool          // of sweep
	limit    time.Duration // of sweep
	timeline bool          // of run

	plugin                 string
	out                    string
	record                 string
	cpuprofile, memprofile string
}

func defaults() settings {
	return settings{via: []string{transport.Direct}, Experiment: bench.Experiment{
		Recipes: []load.Recipe{load.Election}, Workloads: []load.Workload{load.Drain}, Strategies: recipes.Strategies(),
		Contenders: []int{1, 10, 100}, Delays: []time.Duration{0}, Arrivals: load.Poisson,
	}}
}

func (c command) settingsFlags(s *settings, verb string) *flag.FlagSet {
	f := flag.NewFlagSet("zkbench "+verb, flag.ContinueOnError)
	s.set = f
	f.Var(list.Flag(&s.Recipes, parseName[load.Recipe]), "recipe", "`list` of recipes: election, lock")
	f.Var(list.Flag(&s.Workloads, parseName[load.Workload]), "workload", helptext.Common("`list` of shapes of the load: drain, cycle, failover, open, many, queue, barrier,\ndouble-barrier, two-phase-commit"))
	f.Var(list.Flag(&s.Strategies, parseStrategy), "strategy", "`list` of ways to wait: herd,predecessor,handoff")
	f.Var(list.Flag(&s.Contenders, list.Positive), "contenders", helptext.Common("`list` of numbers of contenders in a line, each with a session; 1..1000 is 1, 2, 5, 10,\n20, ... up to 1000, 10..50:10 is 10, 20, 30, 40, 50"))
	f.Var(list.Flag(&s.via, c.parseVia), "via", "`list` of ways to reach the recipes: direct (library calls), inprocess (gRPC in memory),\nrelay (library calls through a process that copies bytes), plugin (gRPC to its process)")

	f.Var(list.Flag(&s.Delays, parseDelay), "delay", "`list` of round-trip times to add to each session, such as 0,500us,2ms. A relay in\nzkbench delays the traffic; its processor time and memory count as zkbench's")

	f.IntVar(&s.Count, "count", 10, "trials of each combination; benchstat needs 6 or more")
	f.Uint64Var(&s.Seed, "seed", 1, "decides the order of the trials and the arrivals of -workload open")
	f.DurationVar(&s.Hold, "hold", 0, "how long each holder keeps its grant")
	f.DurationVar(&s.Duration, "duration", 2*time.Second, "how long at least to measure a cycle; a turn of the whole line is always part of it")
	f.DurationVar(&s.Warmup, "warmup", 500*time.Millisecond, "how long at least a cycle runs before it is measured")
	f.DurationVar(&s.sessionTimeout, "session-timeout", 30*time.Second, "session timeout to request; a server that is overloaded for longer loses sessions, and\nthe run ends")

	f.IntVar(&s.Rounds, "rounds", 20, "rounds of -workload queue, barrier, double-barrier and two-phase-commit")
	f.IntVar(&s.Lines, "lines", 4, "`number` of independent lines of -workload many, each with that many contenders")
	f.Float64Var(&s.Rate, "rate", 50, "acquisitions a second of -workload open")
	f.StringVar((*string)(&s.Arrivals), "arrivals", string(s.Arrivals), "how these acquisitions arrive: constant, poisson")

	s.Flags.Add(f)
	if verb != "slo" { // slo runs alone and has no table
		s.join.add(f)
		s.show.add(f)
	} else {
		f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	}

	f.StringVar(&s.plugin, "plugin", "", "plugin executable for -via plugin; by default "+host.PluginName+" beside zkbench, then\non the PATH, then built with go build in a checkout of the module")
	f.StringVar(&s.out, "out", "", "`file` for the results instead of stdout; it is replaced when the run has ended")
	f.StringVar(&s.record, "record", "", helptext.Common("`file` for all measurements, as JSON lines, for report, plan and compare; it is replaced\nwhen the run has ended"))
	f.StringVar(&s.cpuprofile, "cpuprofile", "", "`file` for a CPU profile of the run")
	f.StringVar(&s.memprofile, "memprofile", "", "`file` for a heap profile at the end of the run")
	return f
}

// check returns exit.Usage if the flags contradict each other.
func (s *settings) check(given map[string]bool) error {
	if err := s.Flags.Check(given); err != nil {
		return exit.Usage(err)
	}
	if err := errors.Join(s.join.check(given, s.Servers, s.Workloads), s.show.check(), s.otherBuild.check(given), s.Arrivals.Validate()); err != nil {
		return exit.Usage(err)
	}
	has := func(w load.Workload) bool { return slices.Contains(s.Workloads, w) }
	if !given["session-timeout"] && (has(load.Failover) || has(load.Timeline)) && len(s.Workloads) == 1 {
		s.sessionTimeout = failoverTimeout
	}
	if err := s.checkTimeline(); err != nil {
		return exit.Usage(err)
	}
	delayed := slices.Max(s.Delays) > 0
	least := slices.Min(s.Contenders)
	for _, mistake := range []mistake{
		{s.Count < 1, fmt.Sprintf("-count %d: at least 1", s.Count)},
		{s.Hold < 0 || s.Warmup < 0, "-hold and -warmup must not be negative"},
		{s.Duration <= 0, fmt.Sprintf("-duration %v: more than 0", s.Duration)},
		{s.sessionTimeout < time.Second, fmt.Sprintf("-session-timeout %v: at least 1s", s.sessionTimeout)},
		{given["plugin"] && !slices.Contains(s.via, transport.Plugin), "-plugin needs -via plugin"},
		{slices.Contains(s.via, transport.Relay) && has(load.Failover), "-workload failover cuts off a relay of its own, and cannot be combined with -via relay"},
		{delayed && slices.Contains(s.via, transport.Relay), "-delay has a relay of its own, and cannot be combined with -via relay"},
		{
			(delayed || s.timeline && s.cutsOff()) && s.TLSNeedsName(),
			"with -delay or -fault holder a session cannot know which server's name to expect: give -tls-server-name with a name that is in all certificates, or only one of -servers",
		},
		{s.Rounds < 1, fmt.Sprintf("-rounds %d: at least 1", s.Rounds)},
		{(has(load.Barrier) || has(load.Commit)) && least < 2, "-workload barrier and two-phase-commit need -contenders of 2 or more"},
		{s.Lines < 1, fmt.Sprintf("-lines %d: at least 1", s.Lines)},
		{given["lines"] && !has(load.Many), "-lines needs -workload many"},
		{!(s.Rate > 0) || s.Rate > maxRate, fmt.Sprintf("-rate %v: more than 0 and at most %v", s.Rate, maxRate)},
		{(given["rate"] || given["arrivals"]) && !has(load.Open), "-rate and -arrivals need -workload open"},
		{has(load.Failover) && least < 2, "-workload failover needs -contenders of 2 or more: one is killed and the next is granted"},
	} {
		if mistake.made {
			return exit.Usage(errors.New(mistake.what))
		}
	}
	if err := output.Distinct(output.Named{Flag: "-out", File: s.out}, output.Named{Flag: "-record", File: s.record}, output.Named{Flag: "-cpuprofile", File: s.cpuprofile}, output.Named{Flag: "-memprofile", File: s.memprofile}); err != nil {
		return exit.Usage(err)
	}
	return nil
}

type mistake struct {
	made bool
	what string
}

const (
	// failoverTimeout is the default session timeout of a failover and of a timeline: the shortest that a
	// server with the default tick grants, because the measured time contains it.
	failoverTimeout = 4 * time.Second
	// maxRate is more than any ZooKeeper can grant. It catches typing errors.
	maxRate = 1e6
)

func parseName[T interface {
	~string
	Validate() error
}](name string) (T, error) {
	return T(name), T(name).Validate()
}

func parseStrategy(s string) (recipes.Strategy, error) {
	if s == "" {
		return "", fmt.Errorf("strategy is empty")
	}
	return recipes.Strategy(s).Normalize()
}

// maxDelay leaves time for the few round trips of a handshake within the default of
// recipes.SessionConfig.ConnectTimeout, two seconds.
const maxDelay = 500 * time.Millisecond

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a time, such as 500us or 2ms", s)
	case d < 0 || d > maxDelay:
		return 0, fmt.Errorf("%v is not between 0 and %v", d, maxDelay)
	}
	return d, nil
}

func (c command) parseVia(s string) (string, error) {
	if _, ok := c.transports[s]; !ok {
		return "", fmt.Errorf("transport %q is unknown; one of %s", s, strings.Join(slices.Sorted(maps.Keys(c.transports)), ", "))
	}
	return s, nil
}

// timelineDefaults are the defaults of other flags with -timeline.
var timelineDefaults = map[string]string{"recipe": "lock", "workload": "timeline", "strategy": "handoff", "contenders": "10", "count": "1"}

// calm is how long a timeline continues after its last fault, by default.
const calm = 10 * time.Second

func (s *settings) addTimeline(f *flag.FlagSet) {
	f.BoolVar(&s.timeline, "timeline", false, "run a closed loop for -duration, and record the grants, waits and handoffs of each second.\nOther defaults: -recipe lock -strategy handoff -contenders 10 -count 1, -session-timeout 4s,\nand a -duration of 10s after the last fault")
	f.Var(list.Flag(&s.Faults, timeline.Parse), "fault", "`list` of faults of -timeline: leader@10s kills the leader then, follower@20s a follower;\nholder@30s cuts off the holder of the lock until its session is lost. A killed server is\nstarted again 5s later, or as in leader@10s:restart=2s")
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
		case f.Server() && s.Ensemble == 0:
			return fmt.Errorf("-fault %v kills a server, and zkbench kills only servers that it has started: give -ensemble 3 (-fault holder@10s needs no such servers)", f)
		case f.Victim == timeline.Follower && s.Ensemble == 1:
			return fmt.Errorf("-fault %v: a single server has no follower; give -ensemble 3", f)
		case !f.Server() && slices.Contains(s.via, transport.Relay):
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

// presets are default values of flags, by the name of the preset.
var presets = map[string]map[string]string{
	// Hunt, Konar, Junqueira, Reed: "ZooKeeper: Wait-free coordination for
	// Internet-scale systems" (2010), table 3: 50, 100 and 200 clients enter and
	// leave, among other numbers, 200 barriers.
	"paper-table-3": {"workload": "double-barrier", "contenders": "50,100,200", "rounds": "200", "count": "1"},
}

func applyPreset(f *flag.FlagSet, name string) error {
	preset, ok := presets[name]
	if !ok {
		return fmt.Errorf("-preset %q is unknown; one of %s", name, strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	}
	return setDefaults(f, preset)
}

func setDefaults(f *flag.FlagSet, values map[string]string) error {
	given := given(f)
	for _, flag := range slices.Sorted(maps.Keys(values)) {
		if given[flag] {
			continue
		}
		if err := f.Set(flag, values[flag]); err != nil {
			return fmt.Errorf("-%s %s: %w", flag, values[flag], err)
		}
	}
	return nil
}

// otherBuild has the flags of run with which another build of zkbench runs the same trials.
type otherBuild struct {
	against string   // the other build; "" for none
	passed  []string // flags for both builds in each trial
}

func (b *otherBuild) add(f *flag.FlagSet) {
	f.StringVar(&b.against, "against", "", "executable `file` of another build of zkbench: trials of both alternate on the same\nservers, and the result is the change from it to this build; -record FILE writes the\nrecords of the other to FILE.against")
}

func (b *otherBuild) check(given map[string]bool) error {
	if b.against == "" {
		return nil
	}
	for _, name := range []string{"join", "out", "cpuprofile", "memprofile", "plugin"} {
		if given[name] {
			return fmt.Errorf("-%s is for a single build, and cannot be combined with -against", name)
		}
	}
	found, err := exec.LookPath(b.against)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	b.against, err = filepath.Abs(found)
	return err
}

// notPassed are the flags that a build does not get, or gets with the values of its trial.
var notPassed = strings.Fields("against count seed record preset quiet raw table embedded ensemble servers recipe workload strategy contenders via delay")

// pass stores the given flags that both builds get. An older build fails with a usage error if
// it does not have one of them.
func (b *otherBuild) pass(f *flag.FlagSet) {
	f.Visit(func(f *flag.Flag) {
		if !slices.Contains(notPassed, f.Name) {
			b.passed = append(b.passed, "-"+f.Name+"="+f.Value.String())
		}
	})
}

// joining has the flags with which several processes measure together.
type joining struct {
	path     string
	workers  int
	patience time.Duration
}

func (j *joining) add(f *flag.FlagSet) {
	f.StringVar(&j.path, "join", "", "run together with other processes, which meet at this `path` in ZooKeeper; start all\nof them with the same flags, on any number of machines")
	f.IntVar(&j.workers, "workers", 0, "`number` of processes that meet at -join; each has -contenders (or -lines) of its own")
	f.DurationVar(&j.patience, "patience", 2*time.Minute, "how long to wait at -join for other processes")
}

func (j *joining) check(given map[string]bool, servers []string, workloads []load.Workload) error {
	switch {
	case !given["join"] && (given["workers"] || given["patience"]):
		return errors.New("-workers and -patience need -join PATH, where the processes meet")
	case !given["join"]:
		return nil
	case j.workers < 2:
		return fmt.Errorf("-workers %d: -join needs 2 or more processes", j.workers)
	case j.patience <= 0:
		return fmt.Errorf("-patience %v: more than 0", j.patience)
	case len(servers) == 0:
		return errors.New("-join needs -servers: the processes must load the same ZooKeeper, and a server in one of them would end with it")
	}
	for _, w := range workloads {
		if !w.Shareable() {
			return fmt.Errorf("-workload %s needs a single process; -join is for drain, cycle, open and many", w)
		}
	}
	if err := recipes.ValidatePath(j.path); err != nil {
		return fmt.Errorf("-join: %w", err)
	}
	return nil
}

// show has the flags for what is written to the terminal.
type show struct {
	raw, quiet bool
	table      string
}

func (s *show) add(f *flag.FlagSet) {
	f.BoolVar(&s.raw, "raw", false, "write the results to stdout even if it is a terminal")
	f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	f.StringVar(&s.table, "table", "", "table at the end: wide (all columns), narrow (80 characters), none; by default it has\nthe width of the terminal")
}

func (s *show) check() error {
	switch s.table {
	case "", "wide", "narrow", "none":
		return nil
	}
	return fmt.Errorf("-table %q: wide, narrow or none", s.table)
}

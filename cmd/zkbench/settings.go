package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/host"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// settings are the flags of run, sweep and slo.
type settings struct {
	bench.Experiment
	set *flag.FlagSet

	via            []string
	sessionTimeout time.Duration

	where
	show
	join joining
	duel

	resume   bool          // of sweep
	limit    time.Duration // of sweep
	timeline bool          // of run

	plugin                 string
	out                    string
	record                 string
	cpuprofile, memprofile string
}

func defaults() settings {
	return settings{via: []string{direct}, Experiment: bench.Experiment{
		Recipes: []load.Recipe{load.Election}, Workloads: []load.Workload{load.Drain}, Strategies: recipes.Strategies(),
		Contenders: []int{1, 10, 100}, Delays: []time.Duration{0}, Arrivals: load.Poisson,
	}}
}

// parseSettings parses and checks the flags of run. An error is a usageError, or flag.ErrHelp
// after it has written the help to stdout.
func (c command) parseSettings(args []string) (settings, error) {
	s := defaults()
	flags := c.flags(&s, "run")
	s.duel.add(flags)
	s.addTimeline(flags)
	preset := flags.String("preset", "", "defaults for several flags at once: paper-table-3")
	if err := c.parse(flags, runHelp, args); err != nil {
		return s, err
	}
	if *preset != "" {
		if err := applyPreset(flags, *preset); err != nil {
			return s, usageError{err}
		}
	}
	if flags.NArg() > 0 {
		return s, usageError{fmt.Errorf("%q is not a flag; values of a list are separated by commas without blanks", flags.Arg(0))}
	}
	if err := s.defaultTimeline(flags); err != nil {
		return s, usageError{err}
	}
	s.pass(flags)
	return s, s.check(given(flags))
}

// parse parses the flags of a verb, whose name is that of flags. An error is a usageError, or
// flag.ErrHelp after it has written the help to stdout.
func (c command) parse(flags *flag.FlagSet, help string, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if c.explain {
			fmt.Fprintln(c.stdout, helptext.Long(help, flags))
		} else {
			fmt.Fprintln(c.stdout, helptext.Short("zkbench", strings.TrimPrefix(flags.Name(), "zkbench "), help, flags))
		}
		return err
	case err != nil:
		return usageError{err}
	}
	return nil
}

func (c command) flags(s *settings, verb string) *flag.FlagSet {
	f := flag.NewFlagSet("zkbench "+verb, flag.ContinueOnError)
	s.set = f
	f.Var(list[load.Recipe]{&s.Recipes, parseName[load.Recipe]}, "recipe", "`list` of recipes: election, lock")
	f.Var(list[load.Workload]{&s.Workloads, parseName[load.Workload]}, "workload", helptext.Common("`list` of shapes of the load: drain, cycle, failover, open, many, queue, barrier,\ndouble-barrier, two-phase-commit"))
	f.Var(list[recipes.Strategy]{&s.Strategies, parseStrategy}, "strategy", "`list` of ways to wait: herd,predecessor,handoff")
	f.Var(list[int]{&s.Contenders, parsePositive}, "contenders", helptext.Common("`list` of numbers of contenders in a line, each with a session; 1..1000 is 1, 2, 5, 10,\n20, ... up to 1000, 10..50:10 is 10, 20, 30, 40, 50"))
	f.Var(list[string]{&s.via, c.parseVia}, "via", "`list` of ways to reach the recipes: direct (library calls), inprocess (gRPC in memory),\nrelay (library calls through a process that copies bytes), plugin (gRPC to its process)")

	f.Var(list[time.Duration]{&s.Delays, parseDelay}, "delay", "`list` of round-trip times to add to each session, such as 0,500us,2ms. A relay in\nzkbench delays the traffic; its processor time and memory count as zkbench's")

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

	s.where.add(f)
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

func given(flags *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// check returns a usageError if the flags contradict each other.
func (s *settings) check(given map[string]bool) error {
	if err := s.where.check(given); err != nil {
		return usageError{err}
	}
	if err := errors.Join(s.join.check(given, s), s.show.check(), s.duel.check(given), s.Arrivals.Validate()); err != nil {
		return usageError{err}
	}
	has := func(w load.Workload) bool { return slices.Contains(s.Workloads, w) }
	if !given["session-timeout"] && (has(load.Failover) || has(load.Timeline)) && len(s.Workloads) == 1 {
		s.sessionTimeout = failoverTimeout
	}
	if err := s.checkTimeline(); err != nil {
		return usageError{err}
	}
	delayed := slices.Max(s.Delays) > 0
	least := slices.Min(s.Contenders)
	for _, mistake := range []mistake{
		{s.Count < 1, fmt.Sprintf("-count %d: at least 1", s.Count)},
		{s.Hold < 0 || s.Warmup < 0, "-hold and -warmup must not be negative"},
		{s.Duration <= 0, fmt.Sprintf("-duration %v: more than 0", s.Duration)},
		{s.sessionTimeout < time.Second, fmt.Sprintf("-session-timeout %v: at least 1s", s.sessionTimeout)},
		{given["plugin"] && !slices.Contains(s.via, plugin), "-plugin needs -via plugin"},
		{slices.Contains(s.via, byRelay) && has(load.Failover), "-workload failover cuts off a relay of its own, and cannot be combined with -via relay"},
		{delayed && slices.Contains(s.via, byRelay), "-delay has a relay of its own, and cannot be combined with -via relay"},
		{
			(delayed || s.timeline && s.cutsOff()) && s.access.encrypted() && s.access.get("tls-server-name") == "" && hosts(s.servers) > 1,
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
			return usageError{errors.New(mistake.what)}
		}
	}
	if err := distinct(named{"-out", s.out}, named{"-record", s.record}, named{"-cpuprofile", s.cpuprofile}, named{"-memprofile", s.memprofile}); err != nil {
		return usageError{err}
	}
	return nil
}

// mistake is a contradiction between flags.
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

func parseServer(s string) (string, error) {
	cfg, err := recipes.SessionConfig{Servers: []string{s}}.Normalize()
	if err != nil {
		return "", err
	}
	return cfg.Servers[0], nil
}

func (c command) parseVia(s string) (string, error) {
	if _, ok := c.transports[s]; !ok {
		return "", fmt.Errorf("transport %q is unknown; one of %s", s, strings.Join(slices.Sorted(maps.Keys(c.transports)), ", "))
	}
	return s, nil
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

// setDefaults sets the flags that were not given.
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

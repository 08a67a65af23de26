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

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// settings is what the flags of run say.
type settings struct {
	recipes    list[load.Recipe]
	workloads  list[load.Workload]
	strategies list[recipes.Strategy]
	contenders list[int]
	via        list[string]

	count                  int
	seed                   uint64
	hold, duration, warmup time.Duration
	sessionTimeout         time.Duration

	servers  list[string]
	ensemble int
	embedded bool

	plugin string
	out    string
}

// parseSettings parses and checks the flags of run. An error is a usageError,
// or flag.ErrHelp when the help has been written to stdout.
func (c command) parseSettings(args []string) (settings, error) {
	s := settings{
		recipes:    list[load.Recipe]{[]load.Recipe{load.Election}, load.ParseRecipe},
		workloads:  list[load.Workload]{[]load.Workload{load.Drain}, load.ParseWorkload},
		strategies: list[recipes.Strategy]{[]recipes.Strategy{recipes.Herd, recipes.Predecessor}, parseStrategy},
		contenders: list[int]{[]int{1, 10, 100}, parsePositive},
		via:        list[string]{[]string{direct}, c.parseVia},
		servers:    list[string]{nil, parseServer},
	}
	flags := s.flags()
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		printRunHelp(c.stdout, flags)
		return s, err
	case err != nil:
		return s, usageError{err}
	case flags.NArg() > 0:
		return s, usageError{fmt.Errorf("%q is not a flag; values of a list are separated by commas without blanks", flags.Arg(0))}
	}
	if err := s.check(given(flags)); err != nil {
		return s, usageError{err}
	}
	return s, nil
}

// flags returns the flags of run, which set s.
func (s *settings) flags() *flag.FlagSet {
	f := flag.NewFlagSet("zkbench run", flag.ContinueOnError)
	f.Var(&s.recipes, "recipe", "`list` of what is contended for: election, lock")
	f.Var(&s.workloads, "workload", "`list` of shapes of the load: drain, cycle")
	f.Var(&s.strategies, "strategy", "`list` of ways to wait: "+(&list[recipes.Strategy]{values: recipes.Strategies()}).String())
	f.Var(&s.contenders, "contenders", "`list` of how many stand in line, with a session each")
	f.Var(&s.via, "via", "`list` of ways to reach the recipes: direct (a library call), inprocess (gRPC in\nmemory), plugin (gRPC to the plugin process)")

	f.IntVar(&s.count, "count", 10, "trials of each combination; benchstat wants 6 or more")
	f.Uint64Var(&s.seed, "seed", 1, "decides the order of the trials")
	f.DurationVar(&s.hold, "hold", 0, "for how long each holder keeps what it was granted")
	f.DurationVar(&s.duration, "duration", 2*time.Second, "how long a cycle is measured")
	f.DurationVar(&s.warmup, "warmup", 500*time.Millisecond, "how long a cycle runs before it is measured")
	f.DurationVar(&s.sessionTimeout, "session-timeout", 30*time.Second, "session timeout to ask for; a server that is overloaded for longer loses sessions,\nwhich ends the run")

	f.BoolVar(&s.embedded, "embedded", false, "measure a server inside zkbench (the default): needs nothing, keeps all in memory,\nsays nothing about how fast a real server is")
	f.IntVar(&s.ensemble, "ensemble", 0, "start this `number` (1 or 3) of real ZooKeeper servers on this machine for the run;\nneeds Java and ZooKeeper (ZOOKEEPER_HOME, or Debian's package zookeeper)")
	f.Var(&s.servers, "servers", "`list` of host:port of servers that are running")

	f.StringVar(&s.plugin, "plugin", "", "plugin executable for -via plugin; by default "+pluginName+" beside zkbench,\nthen on the PATH, then built with go build if this is a checkout of the module")
	f.StringVar(&s.out, "out", "", "`file` that gets what stdout gets, when the run has ended; it is replaced")
	return f
}

// given returns the names of the flags that were given.
func given(flags *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// check says what is wrong with the flags taken together.
func (s *settings) check(given map[string]bool) error {
	var where []string
	for _, name := range []string{"embedded", "ensemble", "servers"} {
		if given[name] {
			where = append(where, "-"+name)
		}
	}
	switch {
	case len(where) > 1:
		return fmt.Errorf("%s exclude each other; give one", strings.Join(where, " and "))
	case given["embedded"] && !s.embedded:
		return errors.New("-embedded=false says where not to measure; give -ensemble or -servers")
	case given["ensemble"] && s.ensemble != 1 && s.ensemble != 3:
		return fmt.Errorf("-ensemble %d: it is 1 or 3", s.ensemble)
	case s.count < 1:
		return fmt.Errorf("-count %d: at least 1", s.count)
	case s.hold < 0 || s.warmup < 0:
		return errors.New("-hold and -warmup must not be negative")
	case s.duration <= 0:
		return fmt.Errorf("-duration %v: more than 0", s.duration)
	case s.sessionTimeout < time.Second:
		return fmt.Errorf("-session-timeout %v: at least 1s", s.sessionTimeout)
	case given["plugin"] && !slices.Contains(s.via.values, plugin):
		return errors.New("-plugin needs -via plugin")
	}
	return nil
}

func parseStrategy(s string) (recipes.Strategy, error) {
	if s == "" {
		return "", fmt.Errorf("strategy is empty")
	}
	return recipes.ParseStrategy(s)
}

func parseServer(s string) (string, error) {
	cfg, err := recipes.Config{Servers: []string{s}}.Normalize()
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

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/slo"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

const sloHelp = `Usage: zkbench slo -under TIME [flags]

Finds the largest load whose 99th percentile stays under TIME. It doubles the load until
that is missed, and then halves the gap.

Examples:

	zkbench slo -under 50ms -over rate -contenders 20 -hold 1ms
	zkbench slo -under 20ms -over contenders -ensemble 3 -from 10 -to 500

Loads:

	-over rate        Arrivals a second of -workload open, by -contenders sessions.
	                  The wait from the scheduled arrival counts. A load fails if an
	                  acquisition is not granted in time.
	-over contenders  Contenders in one line, by default with -workload cycle. The
	                  handoff counts.

Rules:

	Probes    The median of -probes trials at each load decides.
	Invalid   A probe is repeated if zkbench itself was the limit. The fourth such
	          probe ends the search: its figure would not be the server's.
	Record    -record keeps all probes, for zkbench report.

Exit codes:

	0    a load passes; the last pass and the first fail are on stdout
	1    no load passes, or a server, a session or an output failed
	2    the flags cannot be used; nothing was run
	3    a lock broke its promise
	130  interrupted; results so far are on stdout`

// Loads that slo varies.
const (
	overRate       = "rate"
	overContenders = "contenders"
)

type sloSettings struct {
	settings
	search slo.Search
	over   string
}

func (c command) sloVerb(ctx context.Context, args []string) error {
	s := sloSettings{settings: defaults()}
	s.Recipes = []load.Recipe{load.Lock}
	s.Strategies = []recipes.Strategy{recipes.Predecessor}
	s.Contenders = []int{10}
	f := c.settingsFlags(&s.settings, "slo")
	under := f.Duration("under", 0, helptext.Common("the objective for the 99th percentile"))
	f.StringVar(&s.over, "over", overRate, helptext.Common("rate or contenders: what to vary"))
	f.IntVar(&s.search.From, "from", 2, "first load to try")
	f.IntVar(&s.search.To, "to", 1000, "largest load to try")
	f.IntVar(&s.search.Probes, "probes", 3, "trials at each load")
	f.Float64Var(&s.search.Precision, "precision", 0.05, "end when the first fail is within this share of the last pass")
	if err := c.parse(f, sloHelp, args); err != nil {
		return err
	}
	given := given(f)
	s.search.Limit = float64(*under)
	if err := s.adapt(given); err != nil {
		return exit.Usage(err)
	}
	if err := s.check(given); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return exit.Usage(fmt.Errorf("%q is not a flag", f.Arg(0)))
	}
	return c.slo(ctx, s, append([]string{"slo"}, args...))
}

func (s *sloSettings) adapt(given map[string]bool) error {
	switch s.over {
	case overRate:
		if given["workload"] || given["rate"] {
			return errors.New("-over rate uses -workload open and finds the rate; leave out -workload and -rate")
		}
		s.Workloads = []load.Workload{load.Open}
	case overContenders:
		if given["contenders"] {
			return errors.New("-over contenders finds the contenders; give -from and -to")
		}
		if !given["workload"] {
			s.Workloads = []load.Workload{load.Cycle}
		}
		if s.search.From < 2 {
			return errors.New("-from: a handoff needs 2 contenders")
		}
		if w := s.Workloads[0]; w == load.Open || w == load.Failover || w.Own() {
			return errors.New("-over contenders needs -workload cycle, drain or many")
		}
	default:
		return fmt.Errorf("-over %q: rate or contenders", s.over)
	}
	for _, n := range []int{len(s.Recipes), len(s.Workloads), len(s.Strategies), len(s.Contenders), len(s.via), len(s.Delays)} {
		if n != 1 {
			return errors.New("slo searches one combination; give one recipe, workload, strategy, number of contenders, transport and delay")
		}
	}
	switch {
	case s.search.Limit <= 0:
		return errors.New("give the objective with -under, such as -under 20ms")
	case given["count"]:
		return errors.New("slo has no -count; give -probes")
	}
	return s.search.Check()
}

func (c command) slo(ctx context.Context, s sloSettings, args []string) (err error) {
	c.quiet = s.quiet
	end := &exit.Cleanup{}
	defer end.Run(&err)
	e, srv, sink, _, err := c.prepare(ctx, s.settings, end)
	if err != nil {
		return err
	}
	var records []record.Record
	c.say("99th percentile under %v on %s", time.Duration(s.search.Limit), describeServers(srv.About))
	result, err := s.search.Run(ctx, c.prober(s, e, &records))
	if ctx.Err() != nil && !errors.Is(err, load.ErrBroken) {
		err = &exit.Interruption{Done: len(records)}
	}
	return errors.Join(err, c.writeLevels(s, result, err == nil), sink.Keep(records, environment(context.WithoutCancel(ctx), srv, args)))
}

// prober returns a function that runs a load and returns its figure. It appends all probes to
// records, including invalid ones that it repeats. Each probe has its own number, even if it
// leaves no record. So it has its own path and its own arrivals.
func (c command) prober(s sloSettings, e bench.Experiment, records *[]record.Record) func(context.Context, int) (float64, error) {
	number := 0
	return func(ctx context.Context, load int) (float64, error) {
		for try := 1; ; try++ {
			number++
			r, err := c.probe(ctx, s, e, load, number)
			if r.Operations > 0 {
				*records = append(*records, r)
			}
			if err != nil || r.Valid() || try == maxTries {
				return objectiveOf(r, err)
			}
			c.say("%s %d: probe %d is repeated, because zkbench itself was the limit: %s", s.over, load, r.Trial, strings.Join(r.Invalid, "; "))
		}
	}
}

// maxTries is how many times a probe is tried if zkbench itself is the limit.
const maxTries = 4

func (c command) probe(ctx context.Context, s sloSettings, e bench.Experiment, n, number int) (record.Record, error) {
	e.Count = 1
	if s.over == overRate {
		e.Rate = float64(n)
	} else {
		e.Contenders = []int{n}
	}
	if err := e.Validate(); err != nil {
		return record.Record{}, err
	}
	trial := e.Trials()[0]
	trial.Number = number
	return e.Run(ctx, trial)
}

func objectiveOf(r record.Record, err error) (float64, error) {
	switch {
	case errors.Is(err, load.ErrOverloaded):
		return 0, slo.ErrMissed
	case err != nil:
		return 0, err
	case !r.Valid():
		return 0, fmt.Errorf("probe %d (%s): zkbench itself was the limit: %s", r.Trial, r.Name(), strings.Join(r.Invalid, "; "))
	case r.Unfinished > 0:
		return 0, slo.ErrMissed
	}
	objective := unit.HandoffP99
	if r.Workload == load.Open {
		objective = unit.WaitP99
	}
	v, ok := r.Metric(objective)
	if !ok {
		return 0, fmt.Errorf("probe %d (%s) has no %s", r.Trial, r.Name(), objective)
	}
	return v, nil
}

// writeLevels writes the levels and the verdict. It returns exit code 1 if no load passes. An
// interrupted search has no verdict.
func (c command) writeLevels(s sloSettings, r slo.Result, whole bool) error {
	var b strings.Builder
	for _, level := range r.Levels {
		verdict, value := "fail", "not sustained"
		if level.Passed {
			verdict = "pass"
		}
		if v := level.Median(); !math.IsInf(v, 0) {
			value = unit.Nanoseconds(v)
		}
		fmt.Fprintf(&b, "%s %d: p99 %s, %s: %s\n", s.over, level.Load, value, english.Count(len(level.Values), "probe"), verdict)
	}
	if r.LastPass > 0 {
		fmt.Fprintf(&b, "last pass: %s %d\n", s.over, r.LastPass)
	}
	if r.FirstFail > 0 {
		fmt.Fprintf(&b, "first fail: %s %d\n", s.over, r.FirstFail)
	} else if whole {
		fmt.Fprintf(&b, "first fail: none up to %d\n", s.search.To)
	}
	return c.answer(b.String(), codeOf(!whole || r.LastPass > 0))
}

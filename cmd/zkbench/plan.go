package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/list"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/plan"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

const planHelp = `Usage: zkbench plan [flags] FILE...

Answers questions of capacity from the records of a sweep, or from the audit of a production
system. It fits a model to each combination of a sweep that has at least 6 numbers of
contenders from 2 up.

Examples:

	zkbench sweep -ensemble 1 -contenders 2..200 -record sweep.jsonl
	zkbench plan -at 50,150,300 -p99 20ms -hold 100ms sweep.jsonl

	zkbench run -ensemble 1 -workload many -contenders 5 -lines 20 -record many20.jsonl
	zkbench plan -line-rate 2 sweep.jsonl many20.jsonl

	zkrecipes audit -holds -format=json / /var/lib/zookeeper >audit.json
	zkbench plan -from-audit audit.json -from-mntr zk1-*.mntr

Questions:

	-at N,...     What do N contenders cost? Handoff times, throughput, watch events
	              and bytes, each with its 95% interval and the error of the model on
	              levels that were left out of its fit; and what limits the line.
	-p99 TIME     How many contenders keep the 99th percentile of the handoff under
	              TIME?
	-hold H       How long does the last of N in line wait? N-1 times H plus a handoff,
	              if a hold does not change the handoff. A sweep with -hold can
	              check that.
	-line-rate R  How many locks, each taken R times a second, do the servers carry?
	              70% of the highest median throughput of any number of lines. The
	              records need trials of -workload many, from several runs with
	              different -lines. With -hold, also: how busy is one such lock, and
	              how long does an acquisition wait?
	-choose       Which strategy is best for -at contenders, and why?
	-watches W    What does a rolling restart cost -at sessions with W watches each,
	              and what does a lost session cost? Trials of -workload failover in
	              the records show how long no contender held.
	-servers N    How would N servers change the time of writes? The records need two
	              numbers of servers.
	-from-audit F How long do the acquisitions of a production system wait at each path,
	              how busy is the path, and how many times the arrivals saturate it?
	              -growth predicts the waits for more arrivals. -from-mntr, the last flag
	              before its files: how much more do the servers carry?

Each question is answered in a sentence first. A question whose records are missing
names the command that makes them.

Rules:

	Models    Throughput follows the Universal Scalability Law. Costs follow from
	          the strategy: O(N) bytes a handoff for predecessor, O(N squared) for
	          herd.
	Far       Beyond -factor times the largest measured number a service model
	          answers: the time of a handoff by strategy. Its interval grows with the
	          distance, as fast as the errors of predicting each level from the levels
	          below it.
	Network   -rtt adds a round-trip time between sessions and servers, once for each
	          round trip of a handoff. Records at several delays (zkbench run -delay)
	          show how many there are; without them the strategy decides.
	Limits    It warns of ZooKeeper settings that are too low, and names what limits a
	          line: a listing that is too long (max_listing), descriptors, memory,
	          processors, the network.
	Records   Invalid trials are left out. Each machine has models of its own.
	Audit     The waits of the last hour are held out, predicted from the time before, and
	          compared. In a log of less than two hours that is the last quarter. A path is
	          refused if it has fewer than 100 arrivals before that part or 30 in it, if its
	          holds take all of the time, or if its waits do not follow from its holds.
	          Shared locks with readers and priority locks are left out.
	mntr      Each file is one reply to mntr. Its name has the server and the time:
	          zk1-20260102T150405Z.mntr. Without a time, the file's last change counts, and
	          its folder is the server. Rates need two samples of a server.

Exit codes:

	0    every question was answered
	1    a question was refused, or had no answer
	2    the flags or the files cannot be used`

func (c command) planVerb(_ context.Context, args []string) error {
	s := planSettings{}
	f := flag.NewFlagSet("zkbench plan", flag.ContinueOnError)
	f.Var(list.Flag(&s.at, list.Positive), "at", helptext.Common("`list` of numbers of contenders to predict; ranges as in zkbench run"))
	f.DurationVar(&s.p99, "p99", 0, helptext.Common("limit of the handoff's 99th percentile"))
	f.DurationVar(&s.hold, "hold", 0, helptext.Common("how long each holder will hold"))
	f.Float64Var(&s.factor, "factor", plan.DefaultFactor, "how far beyond the largest measured number the fitted curves answer, in multiples of it;\nbeyond that the service model answers")
	f.Float64Var(&s.lineRate, "line-rate", 0, "handoffs a second of each independent line")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the bootstrap")
	f.DurationVar(&s.rtt, "rtt", -1, "predict with this round-trip `time` added between sessions and servers")
	f.Lookup("rtt").DefValue = "0s" // the help shows no default; -1 means that it is not given
	f.BoolVar(&s.choose, "choose", false, helptext.Common("recommend a strategy for -at contenders"))
	f.IntVar(&s.watches, "watches", 0, "watches of each of -at sessions: predict the cost of a rolling restart and a lost session")
	f.IntVar(&s.servers, "servers", 0, "predict writes with this `number` of servers")
	s.addLimits(f)
	s.productionFlags.add(f)
	if err := c.parse(f, planHelp, args); err != nil {
		return err
	}
	if err := s.productionFlags.check(given(f), f.Args()); err != nil {
		return exit.Usage(err)
	}
	switch {
	case s.audit != "":
		return c.planProduction(s.productionFlags, s.seed)
	case f.NArg() == 0:
		return exit.Usage(errors.New("plan needs a file of records (zkbench sweep -record makes one), or -from-audit"))
	case given(f)["rtt"] && s.rtt < 0:
		return exit.Usage(fmt.Errorf("-rtt %v: not negative", s.rtt))
	case s.p99 < 0 || s.hold < 0 || !(s.lineRate >= 0) || s.watches < 0 || s.servers < 0 || !(s.factor >= 1):
		return exit.Usage(errors.New("-p99, -hold, -line-rate, -watches and -servers must not be negative, and -factor must be at least 1"))
	}
	runs, err := readRuns(f.Args()...)
	if err != nil {
		return exit.Usage(err)
	}
	return c.answerPlan(s, runs)
}

func (c command) answerPlan(s planSettings, runs []record.Run) error {
	var out strings.Builder
	models, skipped := fitModels(runs, s.seed)
	if len(models) == 0 {
		return exit.Usage(errors.Join(skipped...))
	}
	for _, m := range models {
		m.Factor = s.factor
		if s.rtt >= 0 {
			m.Delay = s.rtt
		}
	}
	answered := s.answers(&out, models)
	s.failovers(&out, runs)
	answered = s.answerLines(&out, runs) && answered
	if out.Len() > 0 {
		out.WriteString("\n")
	}
	for _, m := range models {
		answered = s.describe(&out, m) && answered
	}
	for _, err := range skipped {
		fmt.Fprintf(&out, "left out: %v\n", err)
	}
	return c.answer(out.String(), codeOf(answered))
}

// codeOf is the exit code of plan: whether every question was answered.
func codeOf(answered bool) int {
	if answered {
		return exit.OK
	}
	return exit.Failed
}

type planSettings struct {
	at       []int
	p99      time.Duration
	hold     time.Duration
	factor   float64
	lineRate float64
	seed     uint64
	rtt      time.Duration
	choose   bool
	watches  int
	servers  int
	limits   []func(*plan.Limits) // from the flags about servers and machines
	productionFlags
}

func (s *planSettings) addLimits(f *flag.FlagSet) {
	const known = ";\nby default the value in the records, or else ZooKeeper's own default"
	s.addLimit(f, "max-listing", "the clients' max_listing, a `number` of bytes (default 67108864)", 1, func(l *plan.Limits, n int) { l.MaxListing = n })
	s.addLimit(f, "max-client-cnxns", "the servers' maxClientCnxns, a `number`; 0 is no limit"+known, 0, func(l *plan.Limits, n int) { l.MaxClientCnxns = n })
	s.addLimit(f, "descriptors", "`number` of open files that a process of contenders may have (default 524288, as in systemd)", 1, func(l *plan.Limits, n int) { l.Descriptors = n })
	s.addLimit(f, "network", "the network's `speed` in Mbit/s (default 1000)", 1, func(l *plan.Limits, n int) { l.Network = float64(n) * 1e6 / 8 })
}

// addLimit adds a flag for a limit of the servers or of the machines.
func (s *planSettings) addLimit(f *flag.FlagSet, name, usage string, least int, set func(*plan.Limits, int)) {
	f.Func(name, usage, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number of at least %d", v, least)
		}
		s.limits = append(s.limits, func(l *plan.Limits) { set(l, n) })
		return nil
	})
}

func (s planSettings) limitsOf(m fitted) plan.Limits {
	l := plan.DefaultLimits(m.Strategy)
	read := func(limit *int, name, suffix string, scale int) {
		if n, err := strconv.Atoi(strings.TrimSuffix(m.details[name], suffix)); err == nil {
			*limit = n * scale
		}
	}
	read(&l.MaxClientCnxns, "server maxClientCnxns", "", 1)
	read(&l.Heap, "server os.memory.max", "MB", 1<<20)
	read(&l.Memory, "memory", " kB", 1<<10)
	read(&l.Processors, "cpus", "", 1)
	fsync, _, _ := strings.Cut(m.details["server fsync"], " ")
	if d, err := time.ParseDuration(fsync); err == nil {
		l.Fsync = d
	}
	for _, set := range s.limits {
		set(&l)
	}
	return l
}

// fitted is a model with the servers of its trials.
type fitted struct {
	*plan.Model
	details   map[string]string // of the first run with such trials
	place     string            // the servers, in words
	servers   int
	embedded  bool
	transport string
	hold      time.Duration
}

// connectString matches the -servers of records, unless they are "none" or need quotes in a shell.
var connectString = regexp.MustCompile(`^[\w.,:/\[\]-]*:[\w.,:/\[\]-]*$`)

// places groups models that can be compared: of the same servers, workload, transport and hold.
func places(models []fitted) [][]fitted {
	return alike(models, func(m fitted) string {
		return fmt.Sprintf("%s, %s, %s, %v", m.place, m.Workload, m.transport, m.hold)
	})
}

// alike groups models with the same key, in the order of the first of each group.
func alike(models []fitted, key func(fitted) string) (groups [][]fitted) {
	for _, m := range models {
		i := slices.IndexFunc(groups, func(g []fitted) bool { return key(g[0]) == key(m) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// unfitted is a model without trials, on the servers of a run.
func unfitted(run record.Run) fitted {
	env := run.Environment
	return fitted{Model: new(plan.Model), details: env.Details, servers: env.Server.Servers, embedded: env.Server.Mode == "embedded"}
}

// drain is a model of -workload drain without a hold, on the same servers.
func (m fitted) drain() fitted {
	m.Model, m.hold = new(plan.Model), 0
	return m
}

// where returns the flags for the same servers.
func (m fitted) where() string {
	switch {
	case m.embedded:
		return "-embedded"
	case connectString.MatchString(m.details["-servers"]):
		return "-servers " + m.details["-servers"]
	}
	return fmt.Sprintf("-ensemble %d", max(1, m.servers))
}

// sweepCommand returns the command that makes the missing records, on the same servers unless
// where says otherwise.
func sweepCommand(m fitted, where string) string {
	where = cmp.Or(where, m.where())
	kind := string(cmp.Or(m.Workload, load.Drain))
	if m.hold > 0 {
		kind += fmt.Sprintf(" -hold %v", m.hold)
	}
	if m.transport != "" && m.transport != transport.Direct {
		kind += " -via " + m.transport
	}
	return fmt.Sprintf("zkbench sweep %s -recipe lock -workload %s -contenders 2..1000 -limit 20s -record more.jsonl", where, kind)
}

// fitModels fits a model to each combination. skipped has an error for each that has too few
// levels.
func fitModels(runs []record.Run, seed uint64) (models []fitted, skipped []error) {
	machine := report.Machines(runs)
	for _, g := range report.By(runs, func(run record.Run, r record.Record) string {
		if r.Workload != load.Drain && r.Workload != load.Cycle {
			return ""
		}
		r.Delay = 0 // a model has all delays
		return report.Title(r, run.Environment.Server) + machine(run, r)
	}) {
		first, f := g.Records[0], unfitted(g.Run)
		f.place = report.Servers(g.Run.Environment.Server) + machine(g.Run, first)
		f.transport, f.hold = first.Transport, first.Hold
		var err error
		if f.Model, err = plan.Fit(g.Records, seed); err != nil {
			f.Model = &plan.Model{Workload: first.Workload}
			skipped = append(skipped, fmt.Errorf("%s: %w; such as by: %s", g.Title, err, sweepCommand(f, "")))
			continue
		}
		f.Name = g.Title
		models = append(models, f)
	}
	if len(models)+len(skipped) == 0 {
		skipped = append(skipped, fmt.Errorf("no trials of -workload drain or cycle in the records; make them with: %s",
			sweepCommand(unfitted(runs[0]), "")))
	}
	return models, skipped
}

// carried is the share of the highest throughput to plan with.
const carried = 0.7

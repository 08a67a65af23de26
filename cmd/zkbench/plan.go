package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/plan"
)

const planHelp = `Usage: zkbench plan [flags] FILE...

Answers questions of capacity from the records of a sweep. It fits a model to each
combination that has at least 6 numbers of contenders from 2 up.

Examples:

	zkbench sweep -ensemble 1 -contenders 2..200 -record sweep.jsonl
	zkbench plan -at 50,150,300 -p99 20ms -hold 100ms sweep.jsonl

	zkbench run -ensemble 1 -workload many -contenders 5 -lines 20 -record many20.jsonl
	zkbench plan -line-rate 2 sweep.jsonl many20.jsonl

Questions:

	-at N,...     What to expect of N contenders: handoff times, throughput, watch
	              events and bytes. Each has an interval of 95%, and the error of
	              the model on levels that were left out of its fit. Says what
	              would end the line.
	-p99 TIME     How many contenders keep the 99th percentile of the handoff under
	              TIME.
	-hold H       How long the last of N in line waits: N-1 times H plus a handoff.
	              It is assumed that a hold does not change the handoff. A sweep
	              with -hold can check that.
	-line-rate R  How many locks, each taken R times a second, the servers carry:
	              70% of the highest throughput that any number of lines made, in
	              the median. The records need trials of -workload many, of several
	              runs with different -lines. With -hold, also how busy one such
	              lock is, and how long an acquisition waits.
	-choose       Which strategy for -at contenders, and why.
	-watches W    What a rolling restart costs -at sessions with W watches each, and
	              what a lost session costs. Trials of -workload failover among the
	              records tell how long nobody held.
	-servers N    What N servers would do to writes. The records need two numbers of
	              servers.

Each question is answered in a sentence first. A question whose records are missing
names the command that makes them.

Rules:

	Models    Throughput follows the Universal Scalability Law. Costs follow from
	          the strategy: O(N) bytes a handoff for predecessor, O(N squared) for
	          herd.
	Far       Beyond -factor times the largest measured number a service model
	          answers: what a handoff takes under the strategy. Its interval grows
	          with the distance, by what predictions of each level from those below it
	          missed.
	Network   -rtt adds a round-trip time between sessions and servers, once for each
	          round trip of a handoff. Records at several delays (zkbench run -delay)
	          tell how many; without them it is assumed from the strategy.
	Limits    It warns of ZooKeeper settings that are too low, and names what limits a
	          line: a listing that is too long (jute.maxbuffer), descriptors, memory,
	          processors, the network.
	Records   Invalid trials are left out. What different machines measured is kept
	          apart.

Exit codes:

	0    every question was answered
	1    a question was refused, or had no answer
	2    the flags or the files cannot be used

Flags:

`

type planSettings struct {
	at       list[int]
	p99      time.Duration
	hold     time.Duration
	factor   float64
	lineRate float64
	seed     uint64
	rtt      time.Duration
	choose   bool
	watches  int
	servers  int
	limits   []func(*plan.Limits) // what the flags say of servers and machines
}

func (c command) planVerb(_ context.Context, args []string) error {
	s := planSettings{at: list[int]{nil, parsePositive}}
	f := flag.NewFlagSet("zkbench plan", flag.ContinueOnError)
	f.Var(&s.at, "at", "`list` of numbers of contenders to predict; ranges as in zkbench run")
	f.DurationVar(&s.p99, "p99", 0, "limit of the handoff's 99th percentile")
	f.DurationVar(&s.hold, "hold", 0, "for how long holders will hold")
	f.Float64Var(&s.factor, "factor", plan.DefaultFactor, "how far beyond the largest measured number the fitted curves answer, in multiples of it;\nfarther out the service model does")
	f.Float64Var(&s.lineRate, "line-rate", 0, "handoffs a second that each independent line needs")
	f.Uint64Var(&s.seed, "seed", 1, "of the bootstrap")
	f.DurationVar(&s.rtt, "rtt", -1, "predict with this round-trip `time` added between sessions and servers")
	f.BoolVar(&s.choose, "choose", false, "say which strategy to use for -at contenders, and why")
	f.IntVar(&s.watches, "watches", 0, "watches of each of -at sessions: say what a rolling restart and a lost session cost")
	f.IntVar(&s.servers, "servers", 0, "say what this `number` of servers would do to writes")
	s.limitFlags(f)
	if err := c.parse(f, planHelp, args); err != nil {
		return err
	}
	switch {
	case f.NArg() == 0:
		return usageError{errors.New("plan needs a file of records; zkbench sweep -record makes one")}
	case given(f)["rtt"] && s.rtt < 0:
		return usageError{fmt.Errorf("-rtt %v: not negative", s.rtt)}
	case s.p99 < 0 || s.hold < 0 || !(s.lineRate >= 0) || s.watches < 0 || s.servers < 0 || !(s.factor >= 1):
		return usageError{errors.New("-p99, -hold, -line-rate, -watches and -servers must not be negative, and -factor not under 1")}
	}
	runs, err := readRuns(f.Args())
	if err != nil {
		return usageError{err}
	}
	return c.plan(s, runs)
}

func (c command) plan(s planSettings, runs []record.Run) error {
	var out strings.Builder
	models, skipped := models(runs, s.seed)
	if len(models) == 0 {
		return usageError{errors.Join(skipped...)}
	}
	for _, m := range models {
		m.Factor = s.factor
		if s.rtt >= 0 {
			m.Delay = s.rtt
		}
	}
	refused := !s.answers(&out, models)
	s.failovers(&out, runs)
	refused = !s.lines(&out, runs) || refused
	if out.Len() > 0 {
		out.WriteString("\n")
	}
	for _, m := range models {
		refused = !s.describe(&out, m) || refused
	}
	for _, err := range skipped {
		fmt.Fprintf(&out, "left out: %v\n", err)
	}
	if _, err := io.WriteString(c.stdout, out.String()); err != nil {
		return err
	}
	if refused {
		return errVerdict
	}
	return nil
}

func (s *planSettings) limitFlags(f *flag.FlagSet) {
	const known = ";\nby default what the records tell, or else ZooKeeper's own default"
	s.limit(f, "jute-maxbuffer", "the servers' jute.maxbuffer, a `number` of bytes"+known, 1, func(l *plan.Limits, n int) { l.MaxBuffer = n })
	s.limit(f, "max-client-cnxns", "the servers' maxClientCnxns, a `number`, of which 0 is no limit"+known, 0, func(l *plan.Limits, n int) { l.MaxClientCnxns = n })
	s.limit(f, "descriptors", "a `number`: what a process of contenders may open (default 524288, as systemd has it)", 1, func(l *plan.Limits, n int) { l.Descriptors = n })
	s.limit(f, "network", "the network's `speed` in Mbit/s (default 1000)", 1, func(l *plan.Limits, n int) { l.Network = float64(n) * 1e6 / 8 })
}

// limit adds a flag for a limit of the servers or of the machines.
func (s *planSettings) limit(f *flag.FlagSet, name, usage string, least int, set func(*plan.Limits, int)) {
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
	if n, err := strconv.Atoi(m.details["server jute.maxbuffer"]); err == nil {
		l.MaxBuffer = n
	}
	if n, err := strconv.Atoi(m.details["server maxClientCnxns"]); err == nil {
		l.MaxClientCnxns = n
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(m.details["server os.memory.max"], "MB")); err == nil {
		l.Heap = n << 20
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(m.details["memory"], " kB")); err == nil {
		l.Memory = n << 10
	}
	if n, err := strconv.Atoi(m.details["cpus"]); err == nil {
		l.Processors = n
	}
	fsync, _, _ := strings.Cut(m.details["server fsync"], " ")
	if d, err := time.ParseDuration(fsync); err == nil {
		l.Fsync = d
	}
	for _, set := range s.limits {
		set(&l)
	}
	return l
}

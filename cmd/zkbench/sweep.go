package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

const sweepHelp = `Usage: zkbench sweep -record FILE [flags]

Runs an experiment with many numbers of contenders and records everything in FILE. The
verbs plan, report and compare read that file.

Examples:

	# Ten trials of each number, on a real ZooKeeper that is started for the run.
	zkbench sweep -ensemble 1 -contenders 1..1000 -limit 20s -record sweep.jsonl

	# A closed loop with a hold, for a plan with that hold.
	zkbench sweep -servers zk:2181 -workload cycle -hold 10ms -record hold.jsonl

Rules:

	Default   It is zkbench run with 1, 2, 5, 10, 20, 50 and 100 contenders. See
	          zkbench help run for workloads and results.
	Progress  On a terminal it shows the remaining time.
	Resume    An interrupt ends the sweep and keeps the results so far. With -resume
	          the same command continues there, even after a crash. It refuses a file
	          that was recorded on another server or with other flags. It repeats
	          invalid trials, unless the file has three or more of a combination and
	          none is valid.

` + runExitCodes

func (c command) sweepVerb(ctx context.Context, args []string) error {
	s := defaults()
	flags := c.sweepFlags(&s)
	if err := c.parse(flags, sweepHelp, args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return exit.Usage(fmt.Errorf("%q is not a flag; values of a list are separated by commas without blanks", flags.Arg(0)))
	case s.record == "":
		return exit.Usage(fmt.Errorf("a sweep needs a file for its records; give -record FILE"))
	case s.limit < 0:
		return exit.Usage(fmt.Errorf("-limit %v: not negative", s.limit))
	case s.join.path != "" && (s.resume || s.limit > 0):
		return exit.Usage(fmt.Errorf("-resume and -limit need a single process: with -join each process would decide differently"))
	}
	if err := s.check(given(flags)); err != nil {
		return err
	}
	return c.experiment(ctx, s, append([]string{"sweep"}, args...))
}

func (c command) sweepFlags(s *settings) *flag.FlagSet {
	s.Contenders = []int{1, 2, 5, 10, 20, 50, 100}
	flags := c.settingsFlags(s, "sweep")
	flags.BoolVar(&s.resume, "resume", false, helptext.Common("continue the file of -record: do not repeat its valid trials, and write each new one\nto it at once"))
	flags.DurationVar(&s.limit, "limit", 0, helptext.Common("leave out trials that would take longer than this `time`, in their measured part, estimated\nfrom shorter lines; 0 is no limit. With a limit, the first round goes from short lines to\nlong ones"))
	return flags
}

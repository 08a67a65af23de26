package main

import (
	"context"
	"flag"
	"fmt"
)

const sweepHelp = `Usage: zkbench sweep -record FILE [flags]

Runs an experiment over many numbers of contenders and keeps all of it in FILE. The
file is for zkbench plan, report and compare.

Examples:

	# Ten trials of each, on a real ZooKeeper that is started for it.
	zkbench sweep -ensemble 1 -contenders 1..1000 -limit 20s -resume -record sweep.jsonl

	# A closed loop with a hold, for a plan with that hold.
	zkbench sweep -servers zk1:2181 -workload cycle -hold 10ms -record hold.jsonl

Rules:

	Default   It is zkbench run with 1, 2, 5, 10, 20, 50 and 100 contenders. See
	          zkbench run -h for workloads, results and exit codes.
	Progress  On a terminal it shows how long it will still take.
	Resume    An interrupt ends it with what was measured so far. With -resume the
	          same command goes on from there, even after a crash. It refuses a
	          file that was recorded on another server or with other flags. Invalid
	          trials are made again, unless three or more of a kind are in the file
	          and none is valid.

Flags:

`

// sweepVerb is zkbench sweep.
func (c command) sweepVerb(ctx context.Context, args []string) error {
	s := c.defaults()
	flags := s.sweepFlags()
	if err := c.parse(flags, sweepHelp, args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("%q is not a flag; values of a list are separated by commas without blanks", flags.Arg(0))}
	case s.record == "":
		return usageError{fmt.Errorf("a sweep is made to be kept; give -record FILE")}
	case s.limit < 0:
		return usageError{fmt.Errorf("-limit %v: not negative", s.limit)}
	case s.join.path != "" && (s.resume || s.limit > 0):
		return usageError{fmt.Errorf("-resume and -limit are of one process: with -join each would decide for itself")}
	}
	if err := s.check(given(flags)); err != nil {
		return err
	}
	return c.experiment(ctx, s, append([]string{"sweep"}, args...))
}

// sweepFlags returns the flags of a sweep, which set s.
func (s *settings) sweepFlags() *flag.FlagSet {
	s.contenders.values = []int{1, 2, 5, 10, 20, 50, 100}
	flags := s.flags("sweep")
	flags.BoolVar(&s.resume, "resume", false, "continue the file of -record: valid trials that it has are not made again, and each\nnew one is in it at once")
	flags.DurationVar(&s.limit, "limit", 0, "leave out numbers of contenders of which the measured part of one trial would take\nlonger than this `time`, by what shorter lines took; 0 leaves out none. The first\nround then goes from short lines to long ones")
	return flags
}

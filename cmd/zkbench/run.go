package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

const runHelp = `Usage: zkbench run [flags]

Runs every combination of -recipe, -workload, -strategy, -contenders and -via, -count
times each. Results go to stdout, or to the file of -out, in the Go benchmark format,
for benchstat.

Examples:

	# The default: every strategy on the embedded server.
	zkbench run

	# On a real ZooKeeper that is started for the run (needs Java and ZooKeeper).
	zkbench run -ensemble 1 -contenders 100 -count 10 -out results.txt
	benchstat -col '/strategy@(herd predecessor handoff)' results.txt

	# On running servers.
	zkbench run -servers zk1:2181,zk2:2181,zk3:2181 -recipe lock -workload cycle

	# How long it takes until there is another leader after the leader's machine has died.
	zkbench run -workload failover -contenders 2,10,100 -count 5

	# Each second while the leader and a follower are killed, and the holder is cut off.
	zkbench run -ensemble 3 -timeline -fault leader@10s,follower@20s,holder@30s -record t.jsonl
	zkbench report -html t.html t.jsonl

	# 200 acquisitions a second by 20 sessions, arriving like those of independent clients.
	zkbench run -recipe lock -workload open -rate 200 -contenders 20 -hold 1ms

	# Table 3 of the ZooKeeper paper: clients enter and leave barriers.
	zkbench run -ensemble 3 -preset paper-table-3

	# Three load generators: start this command on three machines.
	zkbench run -servers zk1:2181,zk2:2181 -join /zkbench/meet -workers 3 -workload cycle

	# The cost of the plugin, compared with calling the library.
	zkbench run -via direct -count 10 -out direct.txt
	zkbench run -via plugin -count 10 -out plugin.txt
	benchstat -ignore /via direct.txt plugin.txt

	# The effect of 0.5, 2 and 20 ms between clients and servers on each strategy.
	zkbench run -ensemble 1 -recipe lock -contenders 20 -delay 500us,2ms,20ms

	# The effect of a change of the library, on a busy machine.
	zkbench run -ensemble 1 -recipe lock -count 20 -against ./zkbench-of-main

Workloads of locks and elections:

	drain     All contenders join the line. Each leaves as soon as it is granted.
	          Every handoff is timed: N contenders make N-1. A single contender
	          takes 100 turns (acquire and release) instead.
	cycle     Closed loop: acquire, hold, release, again. It is measured for
	          -duration, and for at least as many handoffs as contenders.
	failover  All contenders join the line, and the holder is cut off from the
	          servers, as if its machine had died. The time ends when the next
	          contender's call returns the grant. It contains the session timeout,
	          which is 4s unless -session-timeout is given. Reads and events are
	          those of the survivors, until one second after the grant.
	open      -rate acquisitions a second arrive for -duration, spread over the
	          sessions, whether or not earlier ones were granted. A wait counts
	          from the scheduled arrival. Service is from the grant to the end of
	          the release. Acquisitions that are not granted within -duration of
	          the last arrival are cancelled.
	many      -lines independent lines of -contenders each cycle at once.

Timeline: with -timeline the contenders acquire, hold, release and join again for -duration,
and the grants, waits and handoffs of each second are recorded. -fault lets faults happen:

	leader@10s    kills the leader ten seconds after the beginning (SIGKILL). Needs
	              -ensemble 1 or 3.
	follower@20s  kills a follower. Needs -ensemble 3.
	holder@30s    cuts off the next holder from the servers, as if its machine had
	              died, until its session is lost. Every session goes through a
	              relay then. It works on all servers.

A killed server is started again 5s later, or as in leader@10s:restart=2s, and at the end of
the timeline at the latest. Only one server is down at a time: the next kill waits until the
server serves again. A contender whose session is lost opens another one, and the lost
session is counted. Every grant is checked as in other workloads. The table shows the
longest time without a grant after each fault, until the next one: the time to recover,
holds included. After a holder is cut off it contains the session timeout, which is 4s
unless -session-timeout is given.

Workloads of other recipes run for -rounds rounds. They have no -recipe and no -strategy;
-contenders is the number of sessions:

	queue             Half of the sessions put 10 elements each, the others take
	                  them. A wait is from the put to the take.
	barrier           One session removes a barrier at which all others wait. A
	                  wait is from the removal until the session has passed.
	double-barrier    All enter and leave. A wait is the time to enter, service the
	                  time to leave.
	two-phase-commit  One session coordinates, all others vote to commit.

Rules:

	Order     -seed shuffles the trials. Each round has every combination once.
	Lists     Values of a list are separated by commas.
	Warm-up   Cycle and many warm up for -warmup at least and eight times that at
	          most, until they are steady: the rates of three windows in a row
	          (a quarter of -warmup and ten turns each) lie within 10% of their
	          mean.
	Op        An op is a handoff: from the holder's request to leave to the grant of
	          the next contender. For a single contender it is a turn. With -hold,
	          ns/op contains the hold and p50-handoff-ns does not.
	Delay     With -delay, a relay in zkbench holds back what a session sends and gets,
	          for half of the time on each way, in addition to the network. Traffic
	          between servers is not delayed. The relay's processor time and memory
	          count as zkbench's, and plan ignores them.
	Memory    MB-rss is the memory of zkbench and of the plugin when all contenders
	          are in line. It contains the embedded server.
	Checks    Every grant is checked. Two holders at once, or a fencing token that
	          does not grow, end the run.
	Invalid   A trial is marked as invalid, with the reason, if zkbench itself was
	          the limit: its processors, its scheduler, its garbage collector or
	          late starts.
	Servers   The servers' own figures (mntr) are read before and after each trial.
	          -record keeps them and names those that the servers do not have.
	Table     A speed is relative to the first strategy with as many contenders: the
	          median ratio of their times, with an interval of 95%. It is ~ if a
	          Mann-Whitney U test finds no difference (p 0.05), and "too few" if
	          there are too few trials to find one.
	Output    Progress and a table go to stderr: on a terminal a bar, elsewhere a line
	          every 30 seconds. If stdout is a terminal, results are written only
	          with -raw.

Several machines: with -join PATH -workers W, W processes measure together. Start all with
the same flags. They meet at PATH in the servers of -servers, and begin and end each trial
together. The first process combines the measurements and writes the results. Each process
has -contenders of its own in a line that all share; for many, it has -lines of its own.
Open and cycle load the servers W times. Tokens are checked across all processes, but
mutual exclusion only within each, because the clocks of two machines are not close enough.
For the same reason only handoffs within a process are timed. If a process does not come
within -patience, or dies, the others end and name it.

` + runExitCodes

const runExitCodes = `Exit codes:

	0    all trials were measured
	1    the run failed: a server, a session or an output
	2    the flags cannot be used; nothing was run
	3    a lock broke its promise; the message names the trial
	4    more than half of all trials are invalid, or more than half of those of a row
	     with three or more; all were measured
	130  interrupted

However a run ends, the results so far are on stdout or in -out, and in -record.`

func (c command) runVerb(ctx context.Context, args []string) error {
	s, err := c.parseSettings(args)
	if err != nil {
		return err
	}
	if s.against != "" {
		return c.runAgainst(ctx, s)
	}
	return c.experiment(ctx, s, append([]string{"run"}, args...))
}

func (c command) parseSettings(args []string) (settings, error) {
	s := defaults()
	flags := c.settingsFlags(&s, "run")
	s.otherBuild.add(flags)
	s.addTimeline(flags)
	preset := flags.String("preset", "", "defaults for several flags at once: paper-table-3")
	if err := c.parse(flags, runHelp, args); err != nil {
		return s, err
	}
	if *preset != "" {
		if err := applyPreset(flags, *preset); err != nil {
			return s, exit.Usage(err)
		}
	}
	if flags.NArg() > 0 {
		return s, exit.Usage(fmt.Errorf("%q is not a flag; values of a list are separated by commas without blanks", flags.Arg(0)))
	}
	if err := s.defaultTimeline(flags); err != nil {
		return s, exit.Usage(err)
	}
	s.pass(flags)
	return s, s.check(given(flags))
}

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
	          that was recorded on other servers, with other settings of the servers
	          (such as tick, heap or disk), or with other flags. It repeats invalid
	          trials, unless the file has three or more of a combination and none is
	          valid.

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

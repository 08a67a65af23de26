package main

import (
	"fmt"
	"io"
	"strings"
)

const help = `Zkbench measures how fast ZooKeeper's locks and leader elections change hands, and what
that costs. From recorded measurements it plans capacity and finds regressions.

	zkbench                                        three ways to wait, in 15 seconds
	zkbench run -ensemble 1 -contenders 10,100     the same on a real ZooKeeper

The first needs nothing but itself. It starts a ZooKeeper server in its own process and
compares herd, predecessor and handoff with 1, 10 and 100 contenders.

Usage:

	zkbench              the same as zkbench run
	zkbench help VERB    what a verb does, with examples, exit codes and flags
	zkbench version      the version of zkbench

Verbs:

%s`

const runHelp = `Usage: zkbench run [flags]

Runs every combination of -recipe, -workload, -strategy, -contenders and -via, -count
times each. Results go to stdout, or to the file of -out, in the Go benchmark format,
for benchstat.

Examples:

	# What zkbench runs alone: embedded server, every strategy.
	zkbench run

	# On a real ZooKeeper that is started for the run (needs Java and ZooKeeper).
	zkbench run -ensemble 1 -contenders 100 -count 10 -out results.txt
	benchstat -col '/strategy@(herd predecessor handoff)' results.txt

	# On servers that run already.
	zkbench run -servers zk1:2181,zk2:2181,zk3:2181 -recipe lock -workload cycle

	# How long it takes until somebody else leads when the leader's machine dies.
	zkbench run -workload failover -contenders 2,10,100 -count 5

	# 200 acquisitions a second by 20 sessions, as independent clients send them.
	zkbench run -recipe lock -workload open -rate 200 -contenders 20 -hold 1ms

	# Table 3 of the ZooKeeper paper: clients that enter and leave barriers.
	zkbench run -ensemble 3 -preset paper-table-3

	# Three load generators: start the same command on three machines.
	zkbench run -servers zk1:2181,zk2:2181 -join /zkbench/meet -workers 3 -workload cycle

	# What the plugin costs, compared with calling the library.
	zkbench run -via direct -count 10 -out direct.txt
	zkbench run -via plugin -count 10 -out plugin.txt
	benchstat -ignore /via direct.txt plugin.txt

	# What a network of 0.5, 2 and 20 ms between client and servers does to each strategy.
	zkbench run -ensemble 1 -recipe lock -contenders 20 -delay 500us,2ms,20ms

	# What a change of the library costs, on a machine that is not quiet.
	zkbench run -ensemble 1 -recipe lock -count 20 -against ./zkbench-of-main

Workloads of locks and elections:

	drain     All contenders stand in line. Each leaves as soon as it is granted.
	          Every handoff is timed: N contenders give N-1. One contender alone
	          takes 100 turns (acquire and release).
	cycle     Closed loop: acquire, hold, release, again. It is measured for
	          -duration, and for as many handoffs as contenders at least.
	failover  All stand in line, and the holder is cut off from the servers, as if
	          its machine had died. The time ends when the next one knows that it
	          was granted. It contains the session timeout, which is 4s unless
	          -session-timeout is given. Reads and events are the survivors',
	          until one second after the grant.
	open      -rate acquisitions a second arrive for -duration, spread over the
	          sessions, whether or not those before were granted. A wait counts
	          from the scheduled arrival. Service is from the grant to the end of
	          the release. What is not granted within -duration of the last
	          arrival is given up.
	many      -lines independent lines of -contenders each cycle at once.

Workloads of other recipes are -rounds rounds. They have no -recipe and no -strategy;
-contenders is the number of sessions:

	queue             Half of the sessions put 10 elements each, the others take
	                  them. A wait is from the put to the take.
	barrier           One session removes a barrier at which all others wait. A
	                  wait is from the removal to the passing.
	double-barrier    All enter and leave. Waits are of entering, service is of
	                  leaving.
	two-phase-commit  One session coordinates, all others vote to commit.

Rules:

	Order     -seed shuffles the trials. Each round has every combination once.
	Lists     Values of a list are separated by commas.
	Warm-up   Cycle and many warm up for -warmup at least and eight times that at
	          most, until they are steady: the rates of three windows in a row
	          (a quarter of -warmup and ten turns each) lie within 10% of their
	          mean.
	Op        An op is a handoff, from the moment the holder asks to leave to the
	          moment the next one is granted; of one contender alone it is a turn.
	          With -hold, ns/op contains the hold and p50-handoff-ns does not.
	Delay     With -delay, a relay in zkbench holds back what a session sends and gets,
	          for half of the time on each way. It is added to what the network
	          takes. It does not come between the servers. The relay's processor
	          time and memory are in zkbench's own figures, and plan leaves those out.
	Memory    MB-rss is the memory of zkbench, and of the plugin, with everybody in
	          line. The embedded server is part of it.
	Checks    Every grant is checked. Two holders at once, or a fencing token that
	          does not grow, end the run.
	Invalid   A trial is marked as invalid, with the reason, when zkbench itself was
	          the limit: its processors, its scheduler, its garbage collector or
	          late starts.
	Servers   The servers' own figures (mntr) are read before and after each trial.
	          -record keeps them and names those that the servers do not have.
	Table     A speed is relative to the first strategy with as many contenders: the
	          median ratio of their times, with an interval of 95%. It is ~ where a
	          Mann-Whitney U test finds no difference (p 0.05).
	Output    Progress and a table go to stderr: on a terminal a bar, elsewhere a line
	          after the trial in which 30 seconds have passed. Where stdout is a
	          terminal, results are written with -raw only.

Several machines: with -join PATH -workers W, W processes measure together. Start all with
the same flags. They meet at PATH in the servers of -servers, and begin and end each trial
together. The first of them adds what all measured, and writes the results. Each has
-contenders of its own in a line that all share; for many, it has -lines of its own. Open
and cycle load the servers W times. Tokens are checked across all processes, mutual
exclusion within each, because clocks of two machines do not agree well enough. For the
same reason only handoffs within a process are timed. If a process does not come within
-patience, or dies, the others end and name it.

Exit codes:

	0    all trials were measured
	1    a server, a session or an output failed; what was measured before is on
	     stdout, and -out and -record are not written
	2    the flags cannot be used; nothing was run
	3    a lock broke its promise; the message says in which trial
	4    all trials were measured, and more than half of them are invalid, or of
	     those of a row that has three or more
	130  interrupted; what was measured before is on stdout, or in -out, and in
	     -record

Flags:

`

func printHelp(w io.Writer) {
	var list strings.Builder
	for _, v := range verbs() {
		fmt.Fprintf(&list, "\t%-20s %s\n", v.name, v.about)
	}
	fmt.Fprintf(w, help, list.String())
}

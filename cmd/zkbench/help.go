package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

const help = `Zkbench measures how fast ZooKeeper's locks and leader elections change hands.

Usage:

	zkbench              the same as zkbench run
	zkbench VERB -h      what a verb does, with examples, exit codes and flags
	zkbench version      the version of zkbench

Verbs:

%s
Without flags it needs nothing but itself: it starts a ZooKeeper server in its
own process and compares the ways of waiting, herd, predecessor and handoff, for 1,
10 and 100 contenders, in some fifteen seconds.
`

const runHelp = `Usage: zkbench run [flags]

Runs an experiment: every combination of -recipe, -workload, -strategy,
-contenders and -via, -count times each, in an order shuffled by -seed. Flags
with a list take values separated by commas.

	drain     all contenders stand in line, then each one leaves as soon as it
	          is granted, and every handoff is timed. N contenders give N-1
	          handoffs; a single one takes 100 turns (acquire and release).
	cycle     closed loop: acquire, hold, release, again, for -duration.
	failover  all stand in line, and the holder is cut off from the servers as if
	          its machine had died; timed until the next one knows that it has
	          been granted. It contains the session timeout (here 4s unless
	          -session-timeout is given). Reads and events are the survivors',
	          until one second after the grant.
	open      -rate acquisitions a second arrive, spread over the sessions, for
	          -duration, whether or not those before were granted. Waits count
	          from when an acquisition was scheduled; service is from being
	          granted to having released. What is not granted within -duration
	          of the last arrival is given up.
	many      -lines independent lines of -contenders each cycle at once.

These are -rounds rounds of other recipes; -recipe and -strategy say nothing for
them, and -contenders is the number of sessions:

	queue             half of the sessions put 10 elements each, the others take
	                  them; waits are from the putting to the taking
	barrier           one session removes a barrier at which all others wait;
	                  waits are from the removal to the passing
	double-barrier    all enter and leave; waits are of entering, service of
	                  leaving
	two-phase-commit  one session coordinates, all others vote to commit

Cycle and many warm up until steady: for -warmup at least, until the rates of
three windows in a row (a quarter of -warmup and ten turns each) lie within 10%
of their mean, and for eight times -warmup at most.

Every grant is checked: two holders at once, or a fencing token that does not
grow, end the run.

A trial is marked as invalid, with the reason, when zkbench itself was the limit:
its processors, its scheduler, its garbage collector, or late starts. The servers'
own figures (mntr) are taken before and after each trial; -record keeps them and
names those that the servers do not have.

With -join PATH -workers W, W processes, on as many machines, measure together:
start all with the same flags. They meet at PATH in the servers given by -servers,
begin and end each trial together, and the first of them adds what all measured
and writes the results. Each has -contenders of its own in a line that all share,
or, for many, -lines of its own; open and cycle load the servers W times. Tokens
are checked across all of them, mutual exclusion within each: the clocks of two
machines do not agree well enough to tell who was first. For the same reason
handoffs are those within a process. If one does not come within -patience, or
dies, the others end and name it.

Results are written to stdout in the Go benchmark format; progress and a table go
to stderr. An op is a handoff (a turn, if there is a single contender), from
the moment the holder asks to leave to the moment the next one is granted;
with -hold, ns/op contains the hold and p50-handoff-ns does not. MB-rss is the
memory of zkbench, and of the plugin, with everybody in line; the embedded server
is in it.

Examples:

	# What a newcomer runs: embedded server, every strategy.
	zkbench

	# On a real ZooKeeper, started for the run (needs Java and ZooKeeper).
	zkbench run -ensemble 1 -contenders 100 -count 10 > results.txt
	benchstat -col '/strategy@(herd predecessor handoff)' results.txt

	# On servers that are there already.
	zkbench run -servers zk1:2181,zk2:2181,zk3:2181 -recipe lock -workload cycle

	# Time until somebody else leads when the leader's machine dies.
	zkbench run -workload failover -contenders 2,10,100 -count 5

	# 200 acquisitions a second by 20 sessions, as independent clients send them.
	zkbench run -recipe lock -workload open -rate 200 -contenders 20 -hold 1ms

	# Table 3 of the ZooKeeper paper: clients that enter and leave barriers.
	zkbench run -ensemble 3 -preset paper-table-3

	# Three load generators: the same on three machines.
	zkbench run -servers zk1:2181,zk2:2181 -join /zkbench/meet -workers 3 -workload cycle

	# What the plugin costs against calling the library.
	zkbench run -via direct -count 10 -out direct.txt
	zkbench run -via plugin -count 10 -out plugin.txt
	benchstat -ignore /via direct.txt plugin.txt

Exit codes:

	0    all trials were measured
	1    a server, a session or an output failed; what was measured before is on
	     stdout, and -out and -record are not written
	2    the flags cannot be used; nothing was run
	3    a lock broke its promise; the message says in which trial
	130  interrupted; what was measured before is on stdout, in -out and in
	     -record

Flags:

`

// printHelp writes the help of zkbench.
func printHelp(w io.Writer) {
	var list strings.Builder
	for _, v := range verbs() {
		fmt.Fprintf(&list, "\t%-20s %s\n", v.name, v.about)
	}
	fmt.Fprintf(w, help, list.String())
}

// printVerbHelp writes the help of a verb and its flags.
func printVerbHelp(w io.Writer, help string, flags *flag.FlagSet) {
	fmt.Fprint(w, help)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

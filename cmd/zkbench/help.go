package main

import (
	"flag"
	"fmt"
	"io"
)

const help = `Zkbench measures how fast ZooKeeper's locks and leader elections change hands.

Usage:

	zkbench              the same as zkbench run
	zkbench run [flags]  run an experiment; zkbench run -h lists the flags
	zkbench help         print this

Without flags it needs nothing but itself: it starts a ZooKeeper server in its
own process and compares two ways of waiting, herd and predecessor, for 1, 10 and
100 contenders, in some ten seconds.
`

const runHelp = `Usage: zkbench run [flags]

Runs an experiment: every combination of -recipe, -workload, -strategy,
-contenders and -via, -count times each, in an order shuffled by -seed. Flags
with a list take values separated by commas.

	drain   all contenders stand in line, then each one leaves as soon as it is
	        granted, and every handoff is timed. N contenders give N-1 handoffs;
	        a single one takes 100 turns (acquire and release) instead.
	cycle   closed loop: acquire, hold, release, again, for -duration.

Every grant is checked: two holders at once, or a fencing token that does not
grow, end the run.

Results are written to stdout in the Go benchmark format; progress and a table go
to stderr. An op is a handoff (a turn, if there is a single contender), from
the moment the holder asks to leave to the moment the next one is granted;
with -hold, ns/op contains the hold and p50-handoff-ns does not. MB-rss is the
memory of zkbench, and of the plugin, with everybody in line; the embedded server
is in it.

Examples:

	# What a newcomer runs: embedded server, herd against predecessor.
	zkbench

	# On a real ZooKeeper, started for the run (needs Java and ZooKeeper).
	zkbench run -ensemble 1 -contenders 100 -count 10 > results.txt
	benchstat -col '/strategy@(herd predecessor)' results.txt

	# On servers that are there already.
	zkbench run -servers zk1:2181,zk2:2181,zk3:2181 -recipe lock -workload cycle

	# What the plugin costs against calling the library.
	zkbench run -via direct -count 10 -out direct.txt
	zkbench run -via plugin -count 10 -out plugin.txt
	benchstat -ignore /via direct.txt plugin.txt

Exit codes:

	0    all trials were measured
	1    a server, a session or an output failed; what was measured before is on
	     stdout, and -out is not written
	2    the flags cannot be used; nothing was run
	3    a lock broke its promise; the message says in which trial
	130  interrupted; what was measured before is on stdout and in -out

Flags:

`

// printRunHelp writes the help of the verb run.
func printRunHelp(w io.Writer, flags *flag.FlagSet) {
	fmt.Fprint(w, runHelp)
	flags.SetOutput(w)
	flags.PrintDefaults()
}

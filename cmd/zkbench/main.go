// Zkbench measures how fast ZooKeeper's locks and leader elections change hands
// and what that costs, by the number of contenders and the way in which they
// wait. Its results are in the Go benchmark format, for benchstat.
//
//	zkbench                  the ways of waiting compared, on an embedded server
//	zkbench run -h           what else it can measure
//	zkbench compare A B      what became better or worse, for a build to depend on
//	zkbench help             sweep, plan, slo, report and serve
//
// The command is thin: flags, servers and transports are here, the experiment is
// package bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

func main() { os.Exit(Main()) }

// Main is main with an exit code.
func Main() int {
	return command{stdout: os.Stdout, stderr: os.Stderr, transports: transports, terminal: terminal}.process()
}

func (c command) process() int {
	// The first interrupt ends the run with what was measured so far; a second one
	// kills, because the first takes itself away. A terminal that goes away is one too,
	// unless nohup said that it is not. It says so twice, by its shell and when that
	// has ended: after the first it is ignored.
	interrupts := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		interrupts = append(interrupts, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), interrupts...)
	defer stop()
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	// A reader of stdout that goes away is an error of Write, after which the
	// run cleans up, and not a signal that kills it.
	signal.Ignore(syscall.SIGPIPE)
	return c.run(ctx, os.Args[1:])
}

// Exit codes. They are part of the interface and are listed in the help.
const (
	exitOK          = 0
	exitFailed      = 1   // a server, a session or an output failed; or compare found a regression, or slo no pass
	exitUsage       = 2   // flags or input files cannot be used; nothing was run
	exitBroken      = 3   // a lock broke its promise
	exitTooFew      = 3   // of compare: there are too few trials to tell
	exitInvalid     = 4   // zkbench itself was the limit in more than half of the trials, or of those of a row
	exitInterrupted = 130 // as shells have it for SIGINT
)

// command is zkbench with what it talks to.
type command struct {
	stdout, stderr io.Writer
	transports     map[string]launcher // by the name for -via
	terminal       func(io.Writer) (width int, ok bool)
	quiet          bool                         // say nothing
	check          func(record.Record) []string // for tests: says why a trial is invalid, instead of the limits
}

type verb struct {
	name, about string
	run         func(c command, ctx context.Context, args []string) error
}

// verbs are in the order in which the help lists them.
func verbs() []verb {
	return []verb{
		{"run", "run an experiment", command.runVerb},
		{"sweep", "run one over many numbers of contenders, and record it", command.sweepVerb},
		{"compare", "tell what became better or worse between two files of results", command.compareVerb},
		{"plan", "answer questions of capacity from a recorded sweep", command.planVerb},
		{"report", "make an HTML page, figures and tables from records", command.reportVerb},
		{"slo", "find the largest load under a latency objective", command.sloVerb},
		{"serve", "run a server to try things on", command.serveVerb},
	}
}

// usageError is an error in what the user asked for. Nothing was run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs zkbench and returns its exit code.
func (c command) run(ctx context.Context, args []string) int {
	name := "run"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "help", "-h", "-help", "--help":
		if len(args) == 0 {
			printHelp(c.stdout)
			return exitOK
		}
		name, args = args[0], []string{"-h"}
	case "version", "-version", "--version":
		fmt.Fprintln(c.stdout, version.Line("zkbench"))
		return exitOK
	case relayVerbName: // for zkbench itself
		return c.exit(ctx, name, c.relayVerb(os.Stdin, args))
	}
	for _, v := range verbs() {
		if v.name == name {
			return c.exit(ctx, name, v.run(c, ctx, args))
		}
	}
	meant := "; zkbench help lists them"
	if strings.HasPrefix(name, "-") {
		meant = "; flags follow the verb: zkbench run " + name
	}
	return c.exit(ctx, "run", usageError{fmt.Errorf("unknown verb %q%s", name, meant)})
}

// ending is that of a verb whose answer is printed, so that only the exit code is left.
type ending int

func (e ending) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

const (
	errVerdict = ending(exitFailed)
	errTooFew  = ending(exitTooFew)
	errInvalid = ending(exitInvalid)
)

func (c command) exit(ctx context.Context, verb string, err error) int {
	var usage usageError
	var answer ending
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(c.stderr, "zkbench: %v\nzkbench: nothing was run; see zkbench %s -h\n", err, verb)
		return exitUsage
	case errors.Is(err, load.ErrBroken):
		fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
		return exitBroken
	case ctx.Err() != nil:
		when := &interruption{}
		errors.As(err, &when)
		fmt.Fprintf(c.stderr, "zkbench: interrupted %v\n", when)
		lost := unwritten{}
		if errors.As(err, &lost) {
			fmt.Fprintf(c.stderr, "zkbench: %v\n", lost)
			return exitFailed
		}
		return exitInterrupted
	case errors.As(err, &answer):
		return int(answer)
	}
	fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
	return exitFailed
}

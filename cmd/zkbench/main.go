// Zkbench measures how fast ZooKeeper's locks and leader elections change hands and what
// that costs, for each number of contenders and each strategy of waiting. Its results are in
// the Go benchmark format, for benchstat.
//
//	zkbench                  compare the strategies on an embedded server
//	zkbench run -h           list everything that it can measure
//	zkbench compare A B      list what became better or worse, for a build to depend on
//	zkbench help             list the other verbs: sweep, plan, replay, slo, report and serve
//
// This package has what a person meets: the verbs with their flags and exit codes, the servers,
// the transports, the files, and the sentences of answers. Package bench runs the experiment.
// The packages below internal turn records into figures, models, verdicts, tables and pages, and
// know no flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

func main() {
	os.Exit(command{stdout: os.Stdout, stderr: os.Stderr, transports: transports, terminal: terminal}.process())
}

// offline are the verbs that an interrupt kills, because they only read files.
var offline = []string{"compare", "plan", "report"}

func (c command) process() int {
	// If the reader of stdout exits, Write must return an error, so that the run can clean
	// up. The signal would kill it.
	signal.Ignore(syscall.SIGPIPE)
	if len(os.Args) > 1 && slices.Contains(offline, os.Args[1]) {
		return c.run(context.Background(), os.Args[1:])
	}
	// The first interrupt ends the run and keeps the results so far. It also restores the
	// default, so that a second one kills. A terminal that closes counts as an interrupt,
	// except under nohup. It sends SIGHUP twice, through the shell and when the shell has
	// ended, so SIGHUP is ignored after the first.
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
	return c.run(ctx, os.Args[1:])
}

// Exit codes. They are part of the interface and are listed in the help.
const (
	exitOK          = 0
	exitFailed      = 1   // a server, a session or an output failed; or compare found a regression, or slo no pass
	exitUsage       = 2   // flags or input files cannot be used; nothing was run
	exitBroken      = 3   // a lock broke its promise
	exitTooFew      = 3   // of compare: there are too few trials to decide
	exitInvalid     = 4   // more than half of all trials are invalid, or of those of one row of the table
	exitInterrupted = 130 // the shells' code for SIGINT
)

// command is zkbench with its outputs and transports.
type command struct {
	stdout, stderr io.Writer
	transports     map[string]launcher // by the name for -via
	terminal       func(io.Writer) (width int, ok bool)
	quiet          bool                         // write errors and warnings only
	check          func(record.Record) []string // for tests: why a trial is invalid, instead of the limits
}

type verb struct {
	name, about string
	run         func(c command, ctx context.Context, args []string) error
}

// verbs are in the order in which the help lists them.
func verbs() []verb {
	return []verb{
		{"run", "run an experiment", command.runVerb},
		{"sweep", "run an experiment with many numbers of contenders, and record it", command.sweepVerb},
		{"compare", "list what became better or worse between two files of results", command.compareVerb},
		{"plan", "answer questions of capacity from a recorded sweep", command.planVerb},
		{"replay", "play the acquisitions of a production system on other servers", command.replayVerb},
		{"report", "make an HTML page, figures and tables from records", command.reportVerb},
		{"slo", "find the largest load under a latency objective", command.sloVerb},
		{"serve", "run a ZooKeeper server for trials", command.serveVerb},
	}
}

// usageError is an error in the flags or the input files. Nothing was run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs zkbench and returns its exit code.
func (c command) run(ctx context.Context, args []string) int {
	// Errors of servers, and names from files and arguments, may have bytes that a terminal acts upon.
	c.stdout, c.stderr = printable.Writer(c.stdout, printable.Text), printable.Writer(c.stderr, printable.Text)
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
	case relayVerbName: // zkbench itself starts it
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

// ending is the error of a verb that has printed its answer. It has only an exit code.
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
	lost, isLost := errors.AsType[unwritten](err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(c.stderr, "zkbench: %v\nzkbench: nothing was run; see zkbench %s -h\n", err, verb)
		return exitUsage
	case errors.Is(err, load.ErrBroken):
		fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
		return exitBroken
	case errors.As(err, &answer) && !isLost:
		return int(answer)
	case ctx.Err() != nil:
		when := &interruption{}
		errors.As(err, &when)
		fmt.Fprintf(c.stderr, "zkbench: interrupted %v\n", when)
		if isLost {
			fmt.Fprintf(c.stderr, "zkbench: %v\n", lost)
			return exitFailed
		}
		return exitInterrupted
	}
	fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
	return exitFailed
}

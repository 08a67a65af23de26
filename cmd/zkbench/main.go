// Zkbench measures how fast ZooKeeper's locks and leader elections change hands and what
// that costs, for each number of contenders and each strategy of waiting. Its results are in
// the Go benchmark format, for benchstat.
//
//	zkbench                  compare the strategies on an embedded server
//	zkbench help run         list everything that it can measure
//	zkbench compare A B      list what became better or worse, for a build to depend on
//	zkbench help             list the other verbs: sweep, plan, replay, slo, report, serve and verify
//
// This package has what a person meets: the verbs with their flags, and the sentences of answers.
// Its files call each other in one direction only: main.go, the files of verbs, experiment.go,
// settings.go, command.go. Package bench runs the experiment. Below internal are
//
//   - exit codes, lists of values, the servers, the transports, this machine and the files,
//   - and what turns records into figures, models, verdicts, tables and pages, without flags.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/verify"
	"github.com/zkrecipes/zkrecipes/internal/printable"
	"github.com/zkrecipes/zkrecipes/internal/version"
)

func main() {
	os.Exit(command{stdout: os.Stdout, stderr: os.Stderr, transports: transport.All, terminal: terminalWidth}.process())
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
	// except under nohup. A terminal that closes sends SIGHUP twice, through the shell and when the
	// shell has ended, so SIGHUP is ignored after the first.
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

type verbEntry struct {
	name, about string
	run         func(c command, ctx context.Context, args []string) error
}

// verbs are in the order in which the help lists them.
func verbs() []verbEntry {
	return []verbEntry{
		{"run", "run an experiment", command.runVerb},
		{"sweep", "run an experiment with many numbers of contenders, and record it", command.sweepVerb},
		{"compare", "list what became better or worse between two files of results", command.compareVerb},
		{"plan", "answer questions of capacity from a recorded sweep", command.planVerb},
		{"replay", "play the acquisitions of a production system on other servers", command.replayVerb},
		{"report", "make an HTML page, figures and tables from records", command.reportVerb},
		{"slo", "find the largest load under a latency objective", command.sloVerb},
		{"serve", "run a ZooKeeper server for trials", command.serveVerb},
		{"verify", "check a plugin or a host, in any language, against the contract", command.verifyVerb},
	}
}

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
			return exit.OK
		}
		c.explain = true
		name, args = args[0], []string{"-h"}
	case "version", "-version", "--version":
		fmt.Fprintln(c.stdout, version.Line("zkbench"))
		return exit.OK
	case verify.PluginVerb: // a host that verify checks starts it
		return exit.Code(ctx, c.stderr, name, verify.ServePlugin(ctx, strings.Join(args, " ")))
	case transport.RelayVerb: // zkbench itself starts it
		return exit.Code(ctx, c.stderr, name, transport.ServeRelay(c.stdout, os.Stdin, args))
	}
	for _, v := range verbs() {
		if v.name == name {
			return exit.Code(ctx, c.stderr, name, v.run(c, ctx, args))
		}
	}
	meant := "; zkbench help lists them"
	if strings.HasPrefix(name, "-") {
		meant = "; flags follow the verb: zkbench run " + name
	}
	return exit.Code(ctx, c.stderr, "run", exit.Usage(fmt.Errorf("unknown verb %q%s", name, meant)))
}

// overview fits on a screen, as every -h does.
const overview = `Usage: zkbench VERB [flags] ...

Measures how fast ZooKeeper's locks and leader elections change hands, and what
that costs. From recorded measurements it plans capacity and finds regressions.

Examples:
    zkbench                    three strategies, in 15 seconds, without a server
    zkbench run -ensemble 1    the same on a real ZooKeeper

Verbs:
%s
zkbench VERB -h explains a verb, zkbench version prints the version.
More: zkbench help VERB, man zkbench-VERB
`

func printHelp(w io.Writer) {
	var list strings.Builder
	for _, v := range verbs() {
		fmt.Fprintf(&list, "    %-10s %s\n", v.name, v.about)
	}
	fmt.Fprintf(w, overview, list.String())
}

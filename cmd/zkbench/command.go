package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/traffic"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/helptext"
)

type command struct {
	stdout, stderr io.Writer
	transports     map[string]transport.Launcher // by the name for -via
	terminal       func(io.Writer) (width int, ok bool)
	quiet          bool                         // write errors and warnings only
	explain        bool                         // -h of a verb prints the long help
	check          func(record.Record) []string // for tests: why a trial is invalid, instead of the limits
}

// parse parses the flags of a verb. The name of flags is the verb. An error comes from exit.Usage,
// or flag.ErrHelp after it has written the help to stdout.
func (c command) parse(flags *flag.FlagSet, help string, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		if c.explain {
			fmt.Fprintln(c.stdout, helptext.Long(help, flags))
		} else {
			fmt.Fprintln(c.stdout, helptext.Short("zkbench", strings.TrimPrefix(flags.Name(), "zkbench "), help, flags))
		}
		return err
	case err != nil:
		return exit.Usage(err)
	}
	return nil
}

func given(flags *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

var saying sync.Mutex

// say writes a message, unless -quiet is given. warn writes it in any case.
func (c command) say(format string, args ...any) {
	if !c.quiet {
		c.warn(format, args...)
	}
}

func (c command) warn(format string, args ...any) {
	saying.Lock() // progress writes from its own goroutine
	defer saying.Unlock()
	fmt.Fprintf(c.stderr, "zkbench: "+format+"\n", args...)
}

// answer writes the answer of a verb, and returns the exit code if there is one.
func (c command) answer(text string, code int) error {
	if _, err := io.WriteString(c.stdout, text); err != nil || code == exit.OK {
		return err
	}
	return exit.Answer(code)
}

// describeServers describes the servers. For the embedded one it names the flags for real servers.
func describeServers(s record.Server) string {
	if s.Mode == "embedded" {
		return report.Servers(s) + "; to measure a real one, see -ensemble and -servers"
	}
	return report.Servers(s)
}

func readRuns(files ...string) (runs []record.Run, err error) {
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		more, err := record.Read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		runs = append(runs, more...)
	}
	return runs, nil
}

// readAudit reads a file of -from-audit or of replay. An error comes from exit.Usage.
func readAudit(file, below string) (*traffic.Log, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, exit.Usage(err)
	}
	defer f.Close()
	l, err := traffic.Read(f, below)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", file, err))
	}
	return l, nil
}

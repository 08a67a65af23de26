package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/load"
)

// Exit codes. They are part of the interface and are listed in the help.
const (
	exitOK          = 0
	exitFailed      = 1   // a server, a session or an output failed
	exitUsage       = 2   // nothing was run
	exitBroken      = 3   // a lock broke its promise
	exitInterrupted = 130 // as shells have it for SIGINT
)

// command is zkbench with what it talks to.
type command struct {
	stdout, stderr io.Writer
	transports     map[string]launcher // by the name for -via
}

// usageError is an error in what the user asked for. Nothing was run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run runs zkbench and returns its exit code.
func (c command) run(ctx context.Context, args []string) int {
	verb, args := "run", args
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	var err error
	switch verb {
	case "run":
		err = c.runVerb(ctx, args)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(c.stdout, help)
		return exitOK
	default:
		err = usageError{fmt.Errorf("unknown verb %q%s", verb, meant(verb))}
	}
	return c.exit(ctx, err)
}

// meant guesses what an unknown verb was meant to be.
func meant(verb string) string {
	if strings.HasPrefix(verb, "-") {
		return "; flags follow the verb: zkbench run " + verb
	}
	return ""
}

// exit reports an error and returns the exit code for it.
func (c command) exit(ctx context.Context, err error) int {
	usage := usageError{}
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(c.stderr, "zkbench: %v\nzkbench: nothing was run; see zkbench run -h\n", err)
		return exitUsage
	case errors.Is(err, load.ErrBroken):
		fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
		return exitBroken
	case ctx.Err() != nil:
		when := &interruption{}
		errors.As(err, &when)
		fmt.Fprintf(c.stderr, "zkbench: interrupted %v\n", when)
		return exitInterrupted
	}
	fmt.Fprintf(c.stderr, "zkbench: %v\n", err)
	return exitFailed
}

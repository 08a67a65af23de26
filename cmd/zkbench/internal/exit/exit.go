// Package exit has the ways in which a verb of zkbench ends: exit codes, the errors that lead
// to them, and what is cleaned up.
package exit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

// Exit codes. They are part of the interface and are listed in the help.
const (
	OK          = 0
	Failed      = 1   // a server, a session or an output failed; or compare found a regression, or slo found no load that passes
	Misuse      = 2   // flags or input files cannot be used; nothing was run
	Broken      = 3   // a lock broke its promise
	TooFew      = 3   // of compare: there are too few trials to decide
	Invalid     = 4   // more than half of the trials are invalid: of all trials, or of those in one row of the table
	Interrupted = 130 // the shells' code for SIGINT
)

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage returns an error in the flags or the input files. Nothing was run.
func Usage(err error) error { return usageError{err} }

// Answer is the error of a verb that has printed its answer. It has only an exit code.
type Answer int

func (a Answer) Error() string { return fmt.Sprintf("exit code %d", int(a)) }

type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// Unwritten returns the error if results could not be saved in -out or -record. It is reported
// even after an interrupt, whose exit code promises that the results are saved.
func Unwritten(err error) error { return unwritten{err} }

// Interruption is the error of an interrupted run. Its zero value means before the first
// trial.
type Interruption struct {
	Done   int
	Trials int   // 0 for a search, which does not know how many trials it will need
	Why    error // nil if the user interrupted the run
}

func (i *Interruption) Error() string {
	switch {
	case i.Trials == 0 && i.Why != nil: // no trials are run
		return i.Why.Error()
	case i.Trials == 0 && i.Done == 0:
		return "before the first trial"
	case i.Trials == 0:
		return fmt.Sprintf("after %s", english.Count(i.Done, "trial"))
	case i.Why != nil:
		return fmt.Sprintf("after %d of %s: %v", i.Done, english.Count(i.Trials, "trial"), i.Why)
	}
	return fmt.Sprintf("after %d of %s", i.Done, english.Count(i.Trials, "trial"))
}

func (i *Interruption) Unwrap() error { return i.Why }

// Code writes why the verb has failed, if it has, and returns its exit code. ctx has ended if the
// user interrupted the verb.
func Code(ctx context.Context, stderr io.Writer, verb string, err error) int {
	var usage usageError
	var answer Answer
	lost, isLost := errors.AsType[unwritten](err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return OK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "zkbench: %v\nzkbench: nothing was run; see zkbench %s -h, or zkbench help %[2]s\n", err, verb)
		return Misuse
	case errors.Is(err, load.ErrBroken):
		fmt.Fprintf(stderr, "zkbench: %v\n", err)
		return Broken
	case errors.As(err, &answer) && !isLost:
		return int(answer)
	case ctx.Err() != nil:
		when := &Interruption{}
		errors.As(err, &when)
		fmt.Fprintf(stderr, "zkbench: interrupted %v\n", when)
		if isLost {
			fmt.Fprintf(stderr, "zkbench: %v\n", lost)
			return Failed
		}
		return Interrupted
	}
	fmt.Fprintf(stderr, "zkbench: %v\n", err)
	return Failed
}

// Cleanup ends what a verb has started. Its zero value has nothing to end.
type Cleanup struct{ ends []func() error }

// Add adds a function that Run calls.
func (c *Cleanup) Add(end func() error) { c.ends = append(c.ends, end) }

// Run calls the functions, the last one first, and joins their errors to *err.
func (c *Cleanup) Run(err *error) {
	for i := len(c.ends) - 1; i >= 0; i-- {
		*err = errors.Join(*err, c.ends[i]())
	}
	c.ends = nil
}

package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/table"
)

// show is the flags that choose what a run writes to stdout and stderr.
type show struct {
	raw, quiet bool
	table      string
}

// add adds the flags to f.
func (s *show) add(f *flag.FlagSet) {
	f.BoolVar(&s.raw, "raw", false, "write the results to stdout though it is a terminal")
	f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	f.StringVar(&s.table, "table", "", "the table at the end: wide (all columns), narrow (80 characters), none; by default as\nwide as the terminal")
}

func (s *show) check() error {
	switch s.table {
	case "", "wide", "narrow", "none":
		return nil
	}
	return fmt.Errorf("-table %q: wide, narrow or none", s.table)
}

// terminal returns how wide w is, or false if it is not a terminal.
func terminal(w io.Writer) (width int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = table.Narrow
	}
	return width, true
}

// results is where results in the benchmark format go: on a terminal people read the
// table, and a program reads a pipe.
func (c command) results(s show) io.Writer {
	if _, ok := c.terminal(c.stdout); ok && !s.raw {
		return io.Discard
	}
	return c.stdout
}

// tabulate writes the table.
func (c command) tabulate(s show, records []record.Record) error {
	width, _ := c.terminal(c.stderr) // 0 has room for all
	switch {
	case s.quiet, s.table == "none":
		return nil
	case s.table == "wide":
		width = 0
	case s.table == "narrow":
		width = table.Narrow
	}
	return table.Write(c.stderr, records, width)
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// otherBuild has the flags of run with which another build of zkbench runs the same trials.
type otherBuild struct {
	against string   // the other build; "" for none
	passed  []string // flags for both builds in each trial
}

func (b *otherBuild) add(f *flag.FlagSet) {
	f.StringVar(&b.against, "against", "", "executable `file` of another build of zkbench: trials of both alternate on the same\nservers, and the result is the change from it to this build; -record FILE writes the\nrecords of the other to FILE.against")
}

func (b *otherBuild) check(given map[string]bool) error {
	if b.against == "" {
		return nil
	}
	for _, name := range []string{"join", "out", "cpuprofile", "memprofile", "plugin"} {
		if given[name] {
			return fmt.Errorf("-%s is for a single build, and cannot be combined with -against", name)
		}
	}
	found, err := exec.LookPath(b.against)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	b.against, err = filepath.Abs(found)
	return err
}

// notPassed are the flags that a build does not get, or gets with the values of its trial.
var notPassed = strings.Fields("against count seed record preset quiet raw table embedded ensemble servers recipe workload strategy contenders via delay")

// pass stores the given flags that both builds get. An older build fails with a usage error if
// it does not have one of them.
func (b *otherBuild) pass(f *flag.FlagSet) {
	f.Visit(func(f *flag.Flag) {
		if !slices.Contains(notPassed, f.Name) {
			b.passed = append(b.passed, "-"+f.Name+"="+f.Value.String())
		}
	})
}

// joining has the flags with which several processes measure together.
type joining struct {
	path     string
	workers  int
	patience time.Duration
}

func (j *joining) add(f *flag.FlagSet) {
	f.StringVar(&j.path, "join", "", "run together with other processes, which meet at this `path` in ZooKeeper; start all\nof them with the same flags, on any number of machines")
	f.IntVar(&j.workers, "workers", 0, "`number` of processes that meet at -join; each has -contenders (or -lines) of its own")
	f.DurationVar(&j.patience, "patience", 2*time.Minute, "how long to wait at -join for other processes")
}

func (j *joining) check(given map[string]bool, servers []string, workloads []load.Workload) error {
	switch {
	case !given["join"] && (given["workers"] || given["patience"]):
		return errors.New("-workers and -patience need -join PATH, where the processes meet")
	case !given["join"]:
		return nil
	case j.workers < 2:
		return fmt.Errorf("-workers %d: -join needs 2 or more processes", j.workers)
	case j.patience <= 0:
		return fmt.Errorf("-patience %v: more than 0", j.patience)
	case len(servers) == 0:
		return errors.New("-join needs -servers: the processes must load the same ZooKeeper, and a server in one of them would end with it")
	}
	for _, w := range workloads {
		if !w.Shareable() {
			return fmt.Errorf("-workload %s needs a single process; -join is for drain, cycle, open and many", w)
		}
	}
	if err := recipes.ValidatePath(j.path); err != nil {
		return fmt.Errorf("-join: %w", err)
	}
	return nil
}

// show has the flags for what is written to the terminal.
type show struct {
	raw, quiet bool
	table      string
}

func (s *show) add(f *flag.FlagSet) {
	f.BoolVar(&s.raw, "raw", false, "write the results to stdout even if it is a terminal")
	f.BoolVar(&s.quiet, "quiet", false, "write errors and warnings to stderr, and nothing else")
	f.StringVar(&s.table, "table", "", "table at the end: wide (all columns), narrow (80 characters), none; by default it has\nthe width of the terminal")
}

func (s *show) check() error {
	switch s.table {
	case "", "wide", "narrow", "none":
		return nil
	}
	return fmt.Errorf("-table %q: wide, narrow or none", s.table)
}

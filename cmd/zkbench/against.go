package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchunit"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/compare"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/output"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/ensemble"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// againstUnits are the units to compare. With more units, each of them would need more trials. The
// records have all units.
var againstUnits = []string{unit.Time, unit.HandoffP50, unit.HandoffP99, unit.ServiceP50}

// runAgainst runs each trial with both builds, one right after the other, and compares the pairs. The
// build that comes first alternates from pair to pair.
func (c command) runAgainst(ctx context.Context, s settings) (err error) {
	c.quiet = s.quiet
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var files output.Set
	var written [2]*output.File
	if s.record != "" {
		written = [2]*output.File{files.Create("-record", s.record+".against"), files.Create("-record", s.record)}
	}
	defer files.Discard()
	if files.Err != nil {
		return files.Err
	}
	dir, err := os.MkdirTemp("", "zkbench-against-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end := &exit.Cleanup{}
	defer end.Run(&err)
	srv, err := servers.Start(ctx, s.Flags, end)
	if err != nil {
		return err
	}
	var transports []bench.Transport // the trials need only their names
	for _, name := range s.via {
		transports = append(transports, bench.Transport{Name: name})
	}
	trials := s.experiment(transports, srv.Session).Trials()
	c.say("%s of trials on %s, against %s", english.Count(len(trials), "pair"), describeServers(srv.About), s.against)
	builds := [2]build{
		{s.against, filepath.Join(dir, "against"), nil},
		{self, filepath.Join(dir, "this"), nil},
	}
	args := append([]string{"-servers=" + strings.Join(srv.Session.Servers, ",")}, s.passed...)
	err = c.pairs(ctx, trials, s.Seed, args, &builds, written)
	if len(builds[0].runs) > 0 { // includes the pairs before a failure
		if lost := files.Commit(); lost != nil {
			err = errors.Join(err, exit.Unwritten(lost))
		}
	}
	if err != nil {
		return err
	}
	return c.compareBuilds(builds)
}

func (c command) pairs(ctx context.Context, trials []bench.Trial, seed uint64, args []string, builds *[2]build, written [2]*output.File) error {
	progress := c.newProgress(trials)
	defer progress.endAll()
	for done, trial := range trials {
		progress.beginTrial(trial)
		var pair [2]record.Run
		for turn := range pair {
			i := (turn + done) % 2
			var err error
			if pair[i], err = builds[i].run(ctx, append(trialArgs(trial, seed), args...)); err != nil {
				if ctx.Err() != nil && !errors.Is(err, load.ErrBroken) {
					err = &exit.Interruption{Done: done, Trials: len(trials)}
				}
				return err
			}
		}
		progress.step()
		if invalid := append(slices.Clone(pair[0].Records[0].Invalid), pair[1].Records[0].Invalid...); len(invalid) > 0 {
			progress.pause()
			c.warn("left out the pair of trial %d, because a trial is invalid: %s", trial.Number, strings.Join(invalid, "; "))
			continue
		}
		for i := range builds {
			builds[i].runs = append(builds[i].runs, pair[i])
			if written[i] == nil {
				continue
			}
			if err := (&record.JSONWriter{Output: written[i], Environment: pair[i].Environment}).Write(pair[i].Records[0]); err != nil {
				return exit.Unwritten(err)
			}
		}
	}
	return nil
}

func (c command) compareBuilds(builds [2]build) error {
	var sides [2]*compare.Side
	for i, name := range []string{"against", "this"} {
		var err error
		if sides[i], err = compare.OfRuns(name, builds[i].runs); err != nil {
			return err
		}
	}
	o := compare.DefaultOptions()
	for _, u := range againstUnits {
		_, tidy := benchunit.Tidy(1, u)
		o.Units = append(o.Units, tidy)
	}
	result, err := compare.Paired(sides[0], sides[1], o)
	if err != nil {
		return err
	}
	return c.writeComparison(result)
}

func trialArgs(t bench.Trial, seed uint64) []string {
	args := []string{
		"run", "-workload=" + string(t.Workload), "-contenders=" + strconv.Itoa(t.Contenders), "-via=" + t.Transport.Name,
		"-count=1", fmt.Sprintf("-seed=%d", seed+uint64(t.Number)),
	}
	if t.Recipe != "" {
		args = append(args, "-recipe="+string(t.Recipe))
	}
	if t.Delay > 0 { // an older build may not have the flag
		args = append(args, "-delay="+t.Delay.String())
	}
	if t.Strategy != "" {
		args = append(args, "-strategy="+string(t.Strategy))
	}
	return args
}

type build struct {
	path string
	file string // for the records of a trial
	runs []record.Run
}

// endTime is how long a build may take to exit after an interrupt.
const endTime = 10 * time.Second

func (b build) run(ctx context.Context, args []string) (record.Run, error) {
	args = append(slices.Clone(args), "-record="+b.file)
	child := exec.CommandContext(ctx, b.path, args...)
	var said bytes.Buffer
	child.Stderr = &said
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = endTime
	// An interrupt at a terminal would reach the build twice, and the second one would kill it. In
	// its own process group it gets only the interrupt that Cancel sends.
	ensemble.BindToParent(child)
	runtime.LockOSThread() // until the build has ended: see BindToParent
	defer runtime.UnlockOSThread()
	err := child.Run()
	switch failed := (*exec.ExitError)(nil); {
	case !errors.As(err, &failed):
	case failed.ExitCode() == exit.Invalid:
		err = nil // the records are marked as invalid
	case failed.ExitCode() == exit.Broken:
		err = load.ErrBroken
	}
	if err != nil {
		return record.Run{}, fmt.Errorf("%s %s: %w\n%s", b.path, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	runs, err := readRuns(b.file)
	if err != nil {
		return record.Run{}, err
	}
	if len(runs) != 1 || len(runs[0].Records) != 1 {
		return record.Run{}, fmt.Errorf("%s recorded %s instead of one with one trial", b.path, english.Count(len(runs), "run"))
	}
	return runs[0], nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/validity"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/workers"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (c command) runVerb(ctx context.Context, args []string) error {
	s, err := c.parseSettings(args)
	if err != nil {
		return err
	}
	if s.against != "" {
		return c.duel(ctx, s)
	}
	return c.experiment(ctx, s, append([]string{"run"}, args...))
}

// experiment runs the experiment of the settings. The records contain args.
func (c command) experiment(ctx context.Context, s settings, args []string) (err error) {
	c.quiet = s.quiet
	end := &cleanup{}
	defer end.run(&err)
	e, srv, sink, former, err := c.prepare(ctx, s, end)
	if err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return usageError{err}
	}
	crew, err := c.join(ctx, s, &e, end)
	if err != nil {
		return err
	}
	known, err := newHistory(former, srv.about, s.limit)
	if err != nil {
		return err
	}
	env := environment(ctx, srv, args)
	for _, name := range conditions {
		env.Details[name] = s.condition(name)
	}
	if crew != nil {
		env.Details["workers"] = strings.Join(crew.Workers(), "; ")
	}
	c.say("%d trials on %s, seed %d", len(e.Trials()), place(srv.about), e.Seed)
	sink.describe(c.results(s.show), env)
	err = c.measure(ctx, e, crew, known, sink, s.show)
	if crew != nil && crew.Number() != 1 {
		return err // worker 1 writes the results
	}
	if err == nil || sink.wrote {
		err = errors.Join(err, sink.commit())
	}
	return err
}

// prepare opens the files for results, and starts the servers and transports.
func (c command) prepare(ctx context.Context, s settings, end *cleanup) (e bench.Experiment, srv server, out *sink, former []record.Run, err error) {
	if out, former, err = s.openSink(); err != nil {
		return e, srv, out, former, err
	}
	end.add(out.discard)
	if err = s.sameTrials(former); err != nil {
		return e, srv, out, former, err
	}
	stop, err := startProfiles(s.cpuprofile, s.memprofile)
	if err != nil {
		return e, srv, out, former, err
	}
	end.add(stop)
	if err = s.fits(); err != nil {
		return e, srv, out, former, err
	}
	if srv, err = startServer(ctx, s.where, end); err != nil {
		return e, srv, out, former, err
	}
	if err = srv.admits(ctx, s.connections()); err != nil {
		return e, srv, out, former, err
	}
	session := srv.session
	session.SessionTimeout = s.sessionTimeout
	transports, err := c.launch(ctx, s, session, end)
	if err != nil {
		return e, srv, out, former, err
	}
	e = s.experiment(transports, session)
	e.Figures, e.Wanted, e.Server = srv.figures, wantedFigures, srv.victim
	if c.check != nil {
		e.Check = c.check
	}
	return e, srv, out, former, nil
}

func (s settings) experiment(transports []bench.Transport, session recipes.SessionConfig) bench.Experiment {
	limits := validity.DefaultLimits()
	if s.inside() {
		limits = validity.WithServer()
	}
	e := s.Experiment
	e.Transports, e.Session, e.Check, e.Ascending = transports, session, limits.Check, s.limit > 0
	e.Root = fmt.Sprintf("/zkbench/%s-%08x", time.Now().UTC().Format("20060102T150405"), rand.Uint32())
	return e
}

// interruption is the error of an interrupted run. Its zero value means before the first
// trial. trials is 0 for a search, which does not know how many trials it will need.
type interruption struct {
	done, trials int
	why          error // nil if the user interrupted the run
}

func (i *interruption) Error() string {
	switch {
	case i.trials == 0 && i.why != nil: // no trials are run
		return i.why.Error()
	case i.trials == 0 && i.done == 0:
		return "before the first trial"
	case i.trials == 0:
		return fmt.Sprintf("after %d trials", i.done)
	case i.why != nil:
		return fmt.Sprintf("after %d of %d trials: %v", i.done, i.trials, i.why)
	}
	return fmt.Sprintf("after %d of %d trials", i.done, i.trials)
}

func (i *interruption) Unwrap() error { return i.why }

// measure runs the trials and writes each result at once. However the run ends, it writes a
// table of all results at the end.
//
// With a crew, it runs each trial together with the other workers, and worker 1 writes the
// results.
func (c command) measure(ctx context.Context, e bench.Experiment, crew *workers.Crew, known *history, out *sink, show show) (err error) {
	trials := e.Trials()
	records := known.records()
	progress := c.newProgress(trials)
	e.Progress = progress.enrol
	defer func() {
		progress.end()
		err = errors.Join(err, c.tabulate(show, records))
		c.sayInvalid(records)
	}()
	running := ctx
	if crew != nil {
		running = crew.Context()
	}
	for done, trial := range trials {
		if skip, why := known.skip(e.Record(trial)); skip {
			if why != "" {
				progress.pause()
				c.say("left out: %s", why)
			}
			progress.skip(trial)
			continue
		}
		progress.begin(trial)
		r, whole, err := trialOf(running, e, trial, crew)
		switch {
		case err == nil:
		case errors.Is(err, load.ErrBroken):
			return err
		case ctx.Err() != nil:
			return &interruption{done: done, trials: len(trials)}
		case running.Err() != nil:
			return &interruption{done, len(trials), context.Cause(running)}
		default:
			return err
		}
		if !whole {
			progress.step()
			continue
		}
		records = append(records, r)
		known.ceiling.add(r)
		progress.pause()
		if err := out.write(r); err != nil {
			return unwritten{err}
		}
		progress.step()
	}
	if crew != nil {
		crew.Finish(ctx)
	}
	if mostlyInvalid(records, e.Count) {
		return errInvalid
	}
	return nil
}

// mostlyInvalid reports whether more than half of all trials are invalid, or more than half of
// those of a row with three or more. A smaller row does not decide, so that one pause of a busy
// machine does not fail a first run. The invalid trials of a row with count valid ones do not
// matter, because a continued sweep has repeated them.
func mostlyInvalid(records []record.Record, count int) bool {
	const decides = 3
	valid, invalid := map[string]int{}, map[string]int{} // trials of each row
	more := 0                                            // invalid trials than valid ones
	for _, r := range records {
		if r.Valid() {
			valid[r.Name()]++
			more--
		} else {
			invalid[r.Name()]++
		}
	}
	for row, n := range invalid {
		switch {
		case valid[row] >= count:
		case n > valid[row] && n+valid[row] >= decides:
			return true
		default:
			more += n
		}
	}
	return more > 0
}

// trialOf runs a trial. With a crew, worker 1 gets the merged record of all workers; for the
// others whole is false.
func trialOf(ctx context.Context, e bench.Experiment, t bench.Trial, crew *workers.Crew) (r record.Record, whole bool, err error) {
	r, err = e.Run(ctx, t)
	if err != nil || crew == nil {
		return r, true, err
	}
	all, err := crew.Give(ctx, r)
	if err != nil || crew.Number() != 1 {
		return r, false, err
	}
	r, err = bench.Merge(all)
	return r, true, err
}

func (c command) sayInvalid(records []record.Record) {
	invalid := 0
	var example string
	for _, r := range records {
		if !r.Valid() {
			invalid++
			example = fmt.Sprintf("trial %d: %s", r.Trial, strings.Join(r.Invalid, "; "))
		}
	}
	if invalid > 0 {
		c.warn("%d of %d trials are invalid, because zkbench itself was the limit; they are not in the table; for example %s", invalid, len(records), example)
	}
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

// place describes the servers. For the embedded one it names the flags for real servers.
func place(s record.Server) string {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/machine"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/output"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/servers"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/validity"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/workers"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func (c command) experiment(ctx context.Context, s settings, args []string) (err error) {
	c.quiet = s.quiet
	end := &exit.Cleanup{}
	defer end.Run(&err)
	e, srv, sink, former, err := c.prepare(ctx, s, end)
	if err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return exit.Usage(err)
	}
	crew, err := c.joinWorkers(ctx, s, &e, end)
	if err != nil {
		return err
	}
	env := environment(ctx, srv, args)
	known, err := newHistory(former, env, s.limit)
	if err != nil {
		return err
	}
	for _, name := range conditions {
		env.Details[name] = s.condition(name)
	}
	if crew != nil {
		env.Details["workers"] = strings.Join(crew.Workers(), "; ")
	}
	c.say("%s on %s, seed %d", english.Count(len(e.Trials()), "trial"), describeServers(srv.About), e.Seed)
	sink.Describe(c.results(s.show), env)
	err = c.measure(ctx, e, crew, known, sink, s.show)
	if crew != nil && crew.Number() != 1 {
		return err // worker 1 writes the results
	}
	if err == nil || sink.Wrote() {
		err = errors.Join(err, sink.Commit())
	}
	return err
}

func (c command) prepare(ctx context.Context, s settings, end *exit.Cleanup) (e bench.Experiment, srv servers.Server, out *output.Sink, former []record.Run, err error) {
	if out, former, err = output.OpenSink(s.out, s.record, s.resume); err != nil {
		return e, srv, out, former, err
	}
	end.Add(out.Discard)
	if err = s.sameTrials(former); err != nil {
		return e, srv, out, former, err
	}
	stop, err := output.Profiles(s.cpuprofile, s.memprofile)
	if err != nil {
		return e, srv, out, former, err
	}
	end.Add(stop)
	srv, transports, err := c.reach(ctx, s, end)
	if err != nil {
		return e, srv, out, former, err
	}
	e = s.experiment(transports, srv.Session)
	e.Figures, e.Wanted, e.Server = srv.Figures, servers.Wanted, srv.Victim
	if c.check != nil {
		e.Check = c.check
	}
	return e, srv, out, former, nil
}

// reach starts or finds the servers, and prepares the transports to them.
func (c command) reach(ctx context.Context, s settings, end *exit.Cleanup) (srv servers.Server, all []bench.Transport, err error) {
	if err = s.fits(); err != nil {
		return srv, nil, err
	}
	if srv, err = servers.Start(ctx, s.Flags, end); err != nil {
		return srv, nil, err
	}
	if err = srv.Admits(ctx, s.connections()); err != nil {
		return srv, nil, err
	}
	srv.Session.SessionTimeout = s.sessionTimeout
	for _, name := range s.via {
		t, err := transport.Launch(ctx, c.transports, name, s.plugin, srv.Session, end, c.say)
		if err != nil {
			return srv, nil, err
		}
		all = append(all, t)
	}
	return srv, all, nil
}

func (s settings) experiment(transports []bench.Transport, session recipes.SessionConfig) bench.Experiment {
	e := s.Experiment
	e.Transports, e.Session, e.Check, e.Ascending = transports, session, validity.For(s.Inside()).Check, s.limit > 0
	e.Root = fmt.Sprintf("/zkbench/%s-%08x", time.Now().UTC().Format("20060102T150405"), rand.Uint32())
	return e
}

// measure runs the trials and writes each result at once. However the run ends, it writes a
// table of all results at the end.
//
// With a crew, it runs each trial together with the other workers, and worker 1 writes the
// results.
func (c command) measure(ctx context.Context, e bench.Experiment, crew *workers.Crew, known *history, out *output.Sink, show show) (err error) {
	trials := e.Trials()
	records := known.recorded()
	progress := c.newProgress(trials)
	e.Progress = progress.enrol
	defer func() {
		progress.endAll()
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
		progress.beginTrial(trial)
		r, whole, err := trialOf(running, e, trial, crew)
		switch {
		case err == nil:
		case errors.Is(err, load.ErrBroken):
			return err
		case ctx.Err() != nil:
			return &exit.Interruption{Done: done, Trials: len(trials)}
		case running.Err() != nil:
			return &exit.Interruption{Done: done, Trials: len(trials), Why: context.Cause(running)}
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
		if err := out.Write(r); err != nil {
			return exit.Unwritten(err)
		}
		progress.step()
	}
	if crew != nil {
		crew.Finish(ctx)
	}
	if mostlyInvalid(records, e.Count) {
		return exit.Answer(exit.Invalid)
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
		c.warn("%d of %s invalid and not in the table, because zkbench itself was the limit; for example %s", invalid, english.Count(len(records), "trial"), example)
	}
}

func environment(ctx context.Context, srv servers.Server, args []string) record.Environment {
	env := srv.About.Environment()
	env.Details = map[string]string{
		"go": runtime.Version(), "cpus": strconv.Itoa(runtime.NumCPU()),
		"gomaxprocs": strconv.Itoa(runtime.GOMAXPROCS(0)),
		"flags":      strings.Join(args, " "),
		"started":    time.Now().UTC().Format(time.RFC3339),
	}
	if memory := machine.Memory("MemTotal"); memory != "" {
		env.Details["memory"] = memory
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				env.Details[s.Key] = s.Value
			}
		}
	}
	srv.Facts(ctx, env.Details)
	return env
}

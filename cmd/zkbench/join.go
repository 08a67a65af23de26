package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/workers"
	"github.com/zkrecipes/zkrecipes/recipes"
)

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

func (j *joining) check(given map[string]bool, s *settings) error {
	switch {
	case !given["join"] && (given["workers"] || given["patience"]):
		return errors.New("-workers and -patience need -join PATH, where the processes meet")
	case !given["join"]:
		return nil
	case j.workers < 2:
		return fmt.Errorf("-workers %d: -join needs 2 or more processes", j.workers)
	case j.patience <= 0:
		return fmt.Errorf("-patience %v: more than 0", j.patience)
	case len(s.servers) == 0:
		return errors.New("-join needs -servers: the processes must load the same ZooKeeper, and a server in one of them would end with it")
	}
	for _, w := range s.Workloads {
		if !w.Shareable() {
			return fmt.Errorf("-workload %s needs a single process; -join is for drain, cycle, open and many", w)
		}
	}
	if err := recipes.ValidatePath(j.path); err != nil {
		return fmt.Errorf("-join: %w", err)
	}
	return nil
}

// controlTimeout limits the timeout of the session with which a process meets the others. They
// wait that long for a process that has died.
const controlTimeout = 6 * time.Second

// join meets the other processes, and changes the experiment to this process's part. Without
// -join it changes nothing and returns a nil crew.
func (c command) join(ctx context.Context, s settings, e *bench.Experiment, end *cleanup) (*workers.Crew, error) {
	if s.join.path == "" {
		return nil, nil
	}
	cfg := e.Session
	cfg.SessionTimeout = min(controlTimeout, s.sessionTimeout)
	session, err := e.Transports[0].Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("meet the other workers: %w", err)
	}
	end.add(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
		defer cancel()
		_ = session.Close(ctx) // on error the session ends with its timeout
		return nil
	})
	c.say("waiting for %d workers at %s", s.join.workers, s.join.path)
	crew, err := workers.Join(ctx, session, workers.Config{
		Path: s.join.path, Size: s.join.workers, About: self(), Experiment: s.text(), Root: e.Root, Patience: s.join.patience,
	})
	if err != nil {
		return nil, err
	}
	end.add(func() error { crew.Close(); return nil })
	c.say("worker %d of %d; worker 1 writes the results", crew.Number(), s.join.workers)
	e.Root = crew.Root()
	e.Part = &bench.Part{Number: crew.Number(), Of: s.join.workers, Begin: crew.Begin, End: crew.End}
	if crew.Number() != 1 {
		e.Figures, e.Wanted = nil, nil
	}
	return crew, nil
}

func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// inCommon are the flags that all processes of a run must have in common.
var inCommon = strings.Fields("recipe workload strategy contenders via count seed hold duration warmup workers lines rate arrivals session-timeout delay")

func (s settings) text() (text string) {
	for _, name := range inCommon {
		text += fmt.Sprintf("-%s %s ", name, s.set.Lookup(name).Value)
	}
	return text
}

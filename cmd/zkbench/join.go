package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/workers"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

// controlTimeout limits the timeout of the session with which a process meets the others. They
// wait that long for a process that has died.
const controlTimeout = 6 * time.Second

// joinWorkers meets the other processes, and changes the experiment to this process's part. Without
// -join it changes nothing and returns a nil crew.
func (c command) joinWorkers(ctx context.Context, s settings, e *bench.Experiment, end *exit.Cleanup) (*workers.Crew, error) {
	if s.join.path == "" {
		return nil, nil
	}
	cfg := e.Session
	cfg.SessionTimeout = min(controlTimeout, s.sessionTimeout)
	session, err := e.Transports[0].Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("meet the other workers: %w", err)
	}
	end.Add(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
		defer cancel()
		_ = session.Close(ctx) // on error the session ends with its timeout
		return nil
	})
	c.say("waiting for %s at %s", english.Count(s.join.workers, "worker"), s.join.path)
	crew, err := workers.Join(ctx, session, workers.Config{
		Path: s.join.path, Size: s.join.workers, About: workerName(), Experiment: s.commonFlags(), Root: e.Root, Patience: s.join.patience,
	})
	if err != nil {
		return nil, err
	}
	end.Add(func() error { crew.Close(); return nil })
	c.say("worker %d of %d; worker 1 writes the results", crew.Number(), s.join.workers)
	e.Root = crew.Root()
	e.Part = &bench.Part{Number: crew.Number(), Of: s.join.workers, Begin: crew.Begin, End: crew.End}
	if crew.Number() != 1 {
		e.Figures, e.Wanted = nil, nil
	}
	return crew, nil
}

func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// inCommon are the flags that all processes of a run must have in common.
var inCommon = strings.Fields("recipe workload strategy contenders via count seed hold duration warmup workers lines rate arrivals session-timeout delay")

func (s settings) commonFlags() (text string) {
	for _, name := range inCommon {
		text += fmt.Sprintf("-%s %s ", name, s.set.Lookup(name).Value)
	}
	return text
}

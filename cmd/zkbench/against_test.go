package main

import (
	"context"
	"maps"
	"os"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// buildMain is a build of zkbench whose locks need longer to be released: by SLOWER,
// if that is not empty. A busy machine does not make its trials invalid.
func buildMain() {
	c := command{stdout: os.Stdout, stderr: os.Stderr, transports: maps.Clone(transports), terminal: terminal, unlimited: true}
	if slower := os.Getenv("SLOWER"); slower != "" {
		by, err := time.ParseDuration(slower)
		if err != nil {
			panic(err)
		}
		c.transports[direct] = func(context.Context, settings, recipes.SessionConfig, *cleanup, say) (bench.Transport, error) {
			return bench.Transport{Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Session, error) {
				s, err := zookeeper.Open(ctx, cfg)
				return slowSession{s, by}, err
			}}, nil
		}
	}
	os.Exit(c.process())
}

type slowSession struct {
	recipes.Session
	by time.Duration
}

func (s slowSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.Session.Lock(path, cfg)
	return slowLock{l, s.by}, err
}

type slowLock struct {
	recipes.Lock
	by time.Duration
}

func (l slowLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	h, err := l.Lock.Acquire(ctx)
	return slowHold{h, l.by}, err
}

type slowHold struct {
	recipes.Hold
	by time.Duration
}

// Release works for that long, because a sleep of some microseconds takes longer.
func (h slowHold) Release(ctx context.Context) error {
	for end := time.Now().Add(h.by); time.Now().Before(end); {
	}
	return h.Hold.Release(ctx)
}

package main

import (
	"context"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// buildMain is a build of zkbench whose locks need longer to be released, if SLOWER is
// not empty. SLOWER is a time, or a share of the time between two releases such as 10%. A busy machine does not make its trials invalid.
func buildMain() {
	c := command{stdout: os.Stdout, stderr: os.Stderr, transports: maps.Clone(transports), terminal: terminal, check: allValid}
	if slower := os.Getenv("SLOWER"); slower != "" {
		by := &slowness{}
		var err error
		if share, ok := strings.CutSuffix(slower, "%"); ok {
			by.share, err = strconv.ParseFloat(share, 64)
			by.share /= 100
		} else {
			by.time, err = time.ParseDuration(slower)
		}
		if err != nil {
			panic(err)
		}
		c.transports[direct] = func(context.Context, settings, recipes.SessionConfig, *cleanup, say) (bench.Transport, error) {
			return bench.Transport{Open: func(ctx context.Context, cfg recipes.SessionConfig) (recipes.Client, error) {
				s, err := zookeeper.Open(ctx, cfg)
				return slowSession{s, by}, err
			}}, nil
		}
	}
	os.Exit(c.process())
}

type slowSession struct {
	recipes.Client
	by *slowness
}

func (s slowSession) Lock(path string, cfg recipes.LockConfig) (recipes.Lock, error) {
	l, err := s.Client.Lock(path, cfg)
	return slowLock{l, s.by}, err
}

type slowLock struct {
	recipes.Lock
	by *slowness
}

func (l slowLock) Acquire(ctx context.Context) (recipes.Hold, error) {
	h, err := l.Lock.Acquire(ctx)
	return slowHold{h, l.by}, err
}

type slowHold struct {
	recipes.Hold
	by *slowness
}

// slowness is how much longer a release takes.
type slowness struct {
	time  time.Duration
	share float64

	mu   sync.Mutex
	last time.Time // when a release had been held up
}

// Release works for that long, because a sleep of some microseconds takes longer.
func (h slowHold) Release(ctx context.Context) error {
	h.by.holdUp()
	return h.Hold.Release(ctx)
}

func (s *slowness) holdUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := time.Now().Add(s.time)
	if !s.last.IsZero() {
		end = end.Add(time.Duration(s.share * float64(time.Since(s.last))))
	}
	for time.Now().Before(end) {
	}
	s.last = time.Now()
}

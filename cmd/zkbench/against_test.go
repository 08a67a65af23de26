package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/exit"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/transport"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/testing/zktest"
	"github.com/zkrecipes/zkrecipes/recipes"
	"github.com/zkrecipes/zkrecipes/recipes/zookeeper"
)

// buildMain is a build of zkbench whose releases are slower if SLOWER is not empty. SLOWER is a
// time, or a share of the time between two releases such as 10%. A busy machine does not make its
// trials invalid.
func buildMain() {
	signal.Ignore(syscall.Signal(25)) // SIGXFSZ: a write beyond ulimit -f is an error, as on a full disk
	c := command{stdout: os.Stdout, stderr: os.Stderr, transports: maps.Clone(transport.All), terminal: terminalWidth, check: allValid}
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
		c.transports[transport.Direct] = func(context.Context, string, recipes.SessionConfig, *exit.Cleanup, transport.Say) (bench.Transport, error) {
			return bench.Transport{Open: with(func(s recipes.Client) recipes.Client {
				return zktest.Hooked{Client: s, Acquire: func(ctx context.Context, l recipes.Lock) (recipes.Hold, error) {
					h, err := l.Acquire(ctx)
					return slowHold{h, by}, err
				}}
			}, zookeeper.Open)}, nil
		}
	}
	os.Exit(c.process())
}

type slowHold struct {
	recipes.Hold
	by *slowness
}

type slowness struct {
	time  time.Duration
	share float64

	mu   sync.Mutex
	last time.Time // when a release had been held up
}

func (h slowHold) Release(ctx context.Context) error {
	h.by.holdUp()
	return h.Hold.Release(ctx)
}

// holdUp sleeps for time. It busy-waits for a share, because a sleep of a few microseconds takes
// longer than that.
func (s *slowness) holdUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	time.Sleep(s.time)
	if !s.last.IsZero() {
		end := time.Now().Add(time.Duration(s.share * float64(time.Since(s.last))))
		for time.Now().Before(end) {
		}
	}
	s.last = time.Now()
}

func TestFlagsArePassedToBothBuilds(t *testing.T) {
	s := defaults()
	flags := command{transports: transport.All}.settingsFlags(&s, "run")
	must.Do(t, flags.Parse([]string{"-rate", "7", "-arrivals", "constant", "-via", "direct"}))
	if s.pass(flags); !slices.Equal(s.passed, []string{"-arrivals=constant", "-rate=7"}) {
		t.Errorf("%q", s.passed)
	}
}

// TestAgainstFindsATenthAndNothingElse compares a build with itself, and with one whose
// operations take 10 % longer, ZKRECIPES_AGAINST times each. Each comparison takes half a
// minute, so only .ci/suite against runs it.
func TestAgainstFindsATenthAndNothingElse(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("ZKRECIPES_AGAINST"))
	if runs == 0 {
		t.Skip("ZKRECIPES_AGAINST is not set: .ci/suite against")
	}
	self := must.Get(exec.LookPath("zkbench-build"))(t)
	slower := filepath.Join(t.TempDir(), "slower")
	script := fmt.Sprintf("#!/bin/sh\nSLOWER=10%% exec %s \"$@\"\n", self)
	must.Do(t, os.WriteFile(slower, []byte(script), 0o700))
	falsely, found := 0, 0
	for i := range runs {
		if said := verdicts(t, self, self); difference.MatchString(said) {
			falsely++
			t.Logf("the same build:\n%s", said)
		}
		said := verdicts(t, self, slower)
		if ofTime, _, _ := strings.Cut(said, "\n\n"); strings.HasSuffix(ofTime, " better") {
			found++
		} else {
			t.Logf("a tenth slower:\n%s", said)
		}
		t.Logf("after %d runs of each: the tenth was found in %d, and a difference of equal builds in %d", i+1, found, falsely)
	}
	if most := runs / 20; falsely > most || found < runs-most {
		t.Errorf("of %d runs %d found the tenth, and %d a difference that is not there; at most %d may be wrong", runs, found, falsely, most)
	}
}

var difference = regexp.MustCompile(`(?m) (better|WORSE)$`)

// ofAPair are flags for short trials, which are long enough for hundreds of operations.
var ofAPair = strings.Fields("-embedded -quiet -recipe lock -workload cycle -strategy handoff -contenders 10 -duration 300ms -warmup 50ms")

// verdicts compares one build with another, in ZKRECIPES_PAIRS (20) pairs, and returns the
// verdicts.
func verdicts(t *testing.T, self, against string) string {
	t.Helper()
	args := append([]string{"run", "-count=" + cmp.Or(os.Getenv("ZKRECIPES_PAIRS"), "20"), "-against=" + against}, ofAPair...)
	out, err := exec.Command(self, args...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

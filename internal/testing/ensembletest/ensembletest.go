// Package ensembletest starts real ZooKeeper servers for tests.
//
//   - [Start] starts servers for one test, with a [Quick] configuration or any other.
//   - [Shared] starts servers for all tests of a package. Its TestMain must run an
//     [Owner].
//
// If no ZooKeeper is installed, the tests are skipped, and a message says how to install
// it. With ZKRECIPES_REQUIRE_ZOOKEEPER set, as in CI, they fail instead.
//
// Every test that runs on a real ZooKeeper logs one line: "real-zookeeper: " and its
// name. If ZKRECIPES_REAL_COUNT_FILE is set, it also appends the line to that file. So a
// run that skipped everything is noticed without -v. Run with -count=1: a cached result
// appends nothing.
package ensembletest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/ensemble"
)

const (
	requireEnv = "ZKRECIPES_REQUIRE_ZOOKEEPER"
	countEnv   = "ZKRECIPES_REAL_COUNT_FILE"
)

// Quick is a configuration for tests. Its servers start fast, do not sync their disk and
// grant session timeouts from 400 ms to a minute. They delete empty containers and expired
// TTL znodes several times a second.
func Quick(servers int) ensemble.Config {
	return ensemble.Config{
		Servers:           servers,
		TickTime:          200 * time.Millisecond,
		MaxSessionTimeout: time.Minute,
		HeapMiB:           128,
		NoSync:            true,
		FastStart:         true,
		SystemProperties:  map[string]string{"znode.container.checkIntervalMs": "250"},
	}
}

// Start starts servers for this test and stops them when it ends. If the test fails, it
// logs the end of each server's log.
func Start(tb testing.TB, cfg ensemble.Config) *ensemble.Ensemble {
	tb.Helper()
	Require(tb)
	e, err := ensemble.Start(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			logServers(tb, e)
		}
	})
	return e
}

// Require skips or fails the test if no ZooKeeper is installed, and otherwise counts it.
// Start and Shared call it. A test that starts servers in another way, such as by a
// command, calls it itself.
func Require(tb testing.TB) {
	tb.Helper()
	err := find()
	switch {
	case err == nil:
		count(tb)
	case os.Getenv(requireEnv) == "" && (errors.Is(err, ensemble.ErrNotFound) || errors.Is(err, errShort)):
		tb.Skipf("SKIPPED on real ZooKeeper: %v", err)
	default:
		tb.Fatalf("%v (%s is set, so ZooKeeper must be installed)", err, requireEnv)
	}
}

// Found reports whether Require lets a test run.
func Found() bool { return find() == nil }

var errShort = errors.New("-short")

func find() error {
	if testing.Short() && os.Getenv(requireEnv) == "" {
		return errShort
	}
	_, err := ensemble.Find()
	return err
}

func logServers(tb testing.TB, e *ensemble.Ensemble) {
	tb.Helper()
	for i, s := range e.Servers() {
		tb.Logf("log of server %d (%s):\n%s", i, s.Addr(), s.Log())
	}
}

var counted sync.Map // tests that are counted and still run: testing.TB -> struct{}

// count records, once for each run of a test, that it ran on a real ZooKeeper.
func count(tb testing.TB) {
	tb.Helper()
	if _, again := counted.LoadOrStore(tb, struct{}{}); again {
		return
	}
	tb.Cleanup(func() { counted.Delete(tb) })
	line := "real-zookeeper: " + tb.Name()
	tb.Log(line)
	if path := os.Getenv(countEnv); path != "" {
		if err := appendLine(path, line); err != nil {
			tb.Errorf("count this test in %s: %v", countEnv, err)
		}
	}
}

// appendLine appends with one write, so that the lines of concurrent test processes do not
// mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, line); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

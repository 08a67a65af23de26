// Package watchdog ends tests that hang, and prints where.
//
// The -timeout of go test is for a whole package. It is so long that a hang in the first
// minute is reported in the eighteenth. The watchdog checks each running test, except
// tests that wait for their subtests. It reports a hang in two cases:
//
//   - The stack of the test has not changed for four and a half minutes, and no child
//     process was busy. So a hang is reported within five minutes.
//   - The test has run for 13 and a half minutes, even if its stack changes or a child is
//     busy. Such a test may poll forever for an event that never comes, while servers
//     work. A build on a slow and busy machine takes less.
//
// The watchdog prints the stacks of all goroutines and sends SIGQUIT to child processes. Go
// programs among them print their stacks and end. A test that waited for one then
// continues, but the test or the process fails: a test that continues only because a child
// was ended must not pass. If there are no children, or the test still runs after another
// four and a half minutes, the watchdog ends the process.
//
// A test that waits even longer for its own goroutines looks like a hang. For a long run
// of such tests, set ZKRECIPES_TEST_PATIENCE to another duration in place of four and a
// half minutes. The limit of the second case is three times as long. 0 turns the watchdog
// off.
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	patienceEnv     = "ZKRECIPES_TEST_PATIENCE"
	defaultPatience = 4*time.Minute + 30*time.Second
	// checks is the number of checks within the patience. A test hangs if that many in a
	// row find the same stack.
	checks = 10
	// Patience bounds the waits of a test. It is longer than the patience of the watchdog,
	// which prints where the test hangs, so a busy machine fails no test. In a bubble of
	// testing/synctest, where time is virtual, it ends the wait.
	Patience = (longest/checks + 2) * defaultPatience
	// longest is the number of consecutive checks after which a running test hangs.
	longest = 3 * checks
	// Children are busy if they use at least one busyShare-th of a processor. Servers that
	// only keep sessions alive use less.
	busyShare = 10
)

// Bounded returns a context that ends with the test, or when the test hangs.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Closes waits for a channel to be closed.
func Closes(t testing.TB, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(Patience):
		t.Fatalf("%s did not close", what)
	}
}

// Start watches the tests of this process until stop is called. stop returns an error if a
// test continued only because the watchdog ended a child.
func Start() (stop func() error) {
	patience := defaultPatience
	if text := os.Getenv(patienceEnv); text != "" {
		var err error
		if patience, err = time.ParseDuration(text); err != nil {
			panic(fmt.Sprintf("%s: %v", patienceEnv, err))
		}
	}
	if patience <= 0 {
		return func() error { return nil }
	}
	ticker := time.NewTicker(patience / checks)
	return start(patience/checks, func(end <-chan struct{}) bool {
		select {
		case <-ticker.C:
			return true
		case <-end:
			return false
		}
	})
}

// start watches the tests. next waits for the time of the next check; it returns false when end
// is closed. interval is the time between two checks.
func start(interval time.Duration, next func(end <-chan struct{}) bool) (stop func() error) {
	end, hung := make(chan struct{}), make(chan error)
	go func() { hung <- watch(interval, func() bool { return next(end) }) }()
	return func() error {
		close(end)
		return <-hung
	}
}

// Hang never returns. A test uses it in a child process that must hang. select {} is not
// enough: without cgo the runtime detects that all goroutines are blocked, and ends the
// process.
func Hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func watch(interval time.Duration, next func() bool) (hung error) {
	seen := sightings{}
	_, before := descendants()
	for next() {
		_, used := descendants()
		busy := used-before > interval/busyShare
		before = used
		stacks := allStacks()
		for _, s := range seen.update(stacks, busy) {
			switch {
			case s.still == 2*checks || s.times == longest+checks:
				fmt.Fprintf(os.Stderr, "watchdog: %s still hangs; its stack is above\n", s.test)
				os.Exit(2)
			case s.still == checks:
				hung = errors.Join(hung, report(s, "made no progress", checks*interval, stacks))
			case s.times == longest:
				hung = errors.Join(hung, report(s, "run", longest*interval, stacks))
			}
		}
	}
	return hung
}

// report prints where a test hangs, and ends the child processes that it may wait for.
func report(s sighting, what string, since time.Duration, stacks string) error {
	fmt.Fprintf(os.Stderr, "watchdog: %s has %s for %v. All goroutines:\n\n%s\n", s.test, what, since, stacks)
	if quitChildren() == 0 {
		os.Exit(2)
	}
	return fmt.Errorf("watchdog: %s continued only because its child processes were ended", s.test)
}

// allStacks returns the stacks of all goroutines, as a panic prints them.
func allStacks() string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return string(buffer[:n])
		}
	}
}

// sighting is a running test.
type sighting struct {
	test  string // the function that runs it
	stack string
	times int // consecutive checks in which it ran
	still int // the latest of them with the same stack and no busy child
}

// sightings are the running tests of the latest check, by goroutine.
type sightings map[string]sighting

// update compares the stacks of all goroutines with those of the previous check, and
// returns the running tests. busy reports that children have used the processor since then.
func (s sightings) update(stacks string, busy bool) (tests []sighting) {
	now := sightings{}
	for block := range strings.SplitSeq(stacks, "\n\n") {
		header, stack, _ := strings.Cut(block, "\n")
		test, ok := runs(stack)
		if !ok {
			continue
		}
		goroutine, _, _ := strings.Cut(strings.TrimPrefix(header, "goroutine "), " ")
		seen := s[goroutine]
		if busy || seen.stack != stack {
			seen.still = 0
		}
		seen.test, seen.stack = test, stack
		seen.times++
		seen.still++
		now[goroutine] = seen
		tests = append(tests, seen)
	}
	clear(s)
	for goroutine, seen := range now {
		s[goroutine] = seen
	}
	return tests
}

// runs returns the test whose goroutine has this stack. It returns false for other
// goroutines, and for tests that wait for their subtests, their bubble or a parallel slot.
func runs(stack string) (test string, ok bool) {
	above, _, ok := strings.Cut("\n"+stack, "\ntesting.tRunner(")
	if !ok {
		return "", false
	}
	for _, waits := range []string{
		"\ntesting.(*T).Run(", "\ntesting/synctest.Test(", "\ntesting.(*T).Parallel(", "\ntesting.tRunner.",
	} {
		if strings.Contains(above, waits) {
			return "", false
		}
	}
	// Each frame is two lines: the function, and where it is.
	lines := strings.Split(strings.TrimSpace(above), "\n")
	if len(lines) < 2 {
		return "", false
	}
	test = lines[len(lines)-2]
	if i := strings.LastIndex(test, "("); i > 0 {
		test = test[:i]
	}
	return test, true
}

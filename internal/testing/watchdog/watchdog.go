// Package watchdog ends tests that hang, and shows where they do.
//
// The -timeout of go test is for a whole package: it is long, and what hangs in the
// first minute is shown in the eighteenth. A watchdog looks at each running test, but at
// none that waits for its subtests. Two kinds hang:
//
//   - One whose stack has been the same for four and a half minutes, while nothing that
//     this process has started was busy. So a hang is shown within five minutes.
//   - One that has run for 13 and a half minutes, whatever it does and whoever is busy.
//     A test can look again and again for what never comes, beside servers at work. A
//     build on a slow and busy machine takes less.
//
// The watchdog prints the stacks of all goroutines and has child processes print theirs,
// which ends Go's. A test that waited for one goes on. It fails, or the process does:
// what goes on only because a child was ended must not pass. Where nothing was started,
// or if the test still runs after four and a half minutes more, the watchdog ends the
// process.
//
// A test that waits for its own goroutines for longer than that does not hang, and
// looks as if it did. For a long run of such tests, set ZKRECIPES_TEST_PATIENCE to
// another duration, of which the second kind has three times as much. 0 is no watchdog.
package watchdog

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

const (
	patienceEnv     = "ZKRECIPES_TEST_PATIENCE"
	defaultPatience = 4*time.Minute + 30*time.Second
	// looks is how often a test is looked at within the patience. As many in a row
	// have to see the same stack.
	looks = 10
	// Patience bounds what a test waits for. It is longer than a watchdog waits, which
	// shows where the test hangs: a busy machine fails no test. It ends what hangs in a
	// bubble of testing/synctest, where time is virtual.
	Patience = (longest/looks + 2) * defaultPatience
	// longest is in how many looks in a row a test may be seen at work.
	longest = 3 * looks
	// busyShare is the part of a processor that children at work take at least. Servers
	// that only keep sessions alive take less.
	busyShare = 10
)

// Start watches the tests of this process until stop is called. stop returns an error if a
// test has gone on only because the watchdog ended a child.
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
	end, hung := make(chan struct{}), make(chan error)
	go func() { hung <- watch(patience/looks, end) }()
	return func() error {
		close(end)
		return <-hung
	}
}

// Hang never returns. It is for a process that a test starts, and that has to hang.
// There select {} does not do: without cgo the runtime sees that no goroutine can go on,
// and ends the process.
func Hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func watch(interval time.Duration, end <-chan struct{}) (hung error) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	seen := sightings{}
	_, before := descendants()
	for {
		select {
		case <-ticker.C:
		case <-end:
			return hung
		}
		_, used := descendants()
		busy := used-before > interval/busyShare
		before = used
		stacks := allStacks()
		for _, s := range seen.look(stacks, busy) {
			switch {
			case s.still == 2*looks || s.times == longest+looks:
				fmt.Fprintf(os.Stderr, "watchdog: %s does not go on; see above for where it stands\n", s.test)
				os.Exit(2)
			case s.still == looks:
				hung = errors.Join(hung, tell(s, "stood still", looks*interval, stacks))
			case s.times == longest:
				hung = errors.Join(hung, tell(s, "run", longest*interval, stacks))
			}
		}
	}
}

// tell prints where a test hangs, and ends what it may wait for.
func tell(s sighting, what string, since time.Duration, stacks string) error {
	fmt.Fprintf(os.Stderr, "watchdog: %s has %s for %v. All goroutines:\n\n%s\n", s.test, what, since, stacks)
	if quitChildren() == 0 {
		os.Exit(2)
	}
	return fmt.Errorf("watchdog: %s went on only when its child processes were ended", s.test)
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

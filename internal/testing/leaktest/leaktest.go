// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"go.uber.org/goleak"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// rounds is how many times goleak checks, each time for nearly half a second. Once is not
// enough: go-zookeeper's Close waits up to a second for a reply that never arrives if its
// loop has ended. A session closed with a shorter timeout, or never established, does not
// wait for that goroutine.
const rounds = 8

// Main runs the tests, fails if they leave goroutines behind, and exits.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
func Main(tests interface{ Run() int }) { os.Exit(Checked{tests}.Run()) }

// Checked runs tests that must not leave goroutines behind or hang (see package watchdog).
type Checked struct{ Tests interface{ Run() int } }

// Run runs the tests and returns their exit code.
func (c Checked) Run() int {
	collectLess()
	stop := watchdog.Start()
	code := c.Tests.Run()
	hung := stop()
	if code != 0 {
		return code // the goroutines of a failed test are not a second failure
	}
	if hung != nil {
		fmt.Fprintln(os.Stderr, hung)
		return 1
	}
	if err := find(rounds); err != nil {
		fmt.Fprintln(os.Stderr, "the tests passed, but left goroutines behind:", err)
		return 1
	}
	return 0
}

// collectLess lets garbage grow to four times the live heap, unless GOGC is set. Tests have small
// heaps and many goroutines, so the collector took up to two thirds of their processor time.
// Benchmarks and child processes keep Go's default.
func collectLess() {
	flag.Parse()
	if bench := flag.Lookup("test.bench"); os.Getenv("GOGC") == "" && (bench == nil || bench.Value.String() == "") {
		debug.SetGCPercent(400)
	}
}

func find(rounds int, opts ...goleak.Option) error {
	var err error
	for range rounds {
		if err = goleak.Find(opts...); err == nil {
			return nil
		}
	}
	return err
}

// SideBySide runs more parallel tests than there are processors, unless -parallel is set.
// Most of these tests wait most of the time, for a session to expire or a process to start.
type SideBySide struct {
	Tests     interface{ Run() int }
	Processor int // parallel tests per processor; 0 means 4
}

// Run runs the tests and returns their exit code.
func (s SideBySide) Run() int {
	const parallel = "test.parallel"
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == parallel })
	if !given {
		_ = flag.Set(parallel, strconv.Itoa(cmp.Or(s.Processor, 4)*runtime.GOMAXPROCS(0)))
	}
	return s.Tests.Run()
}

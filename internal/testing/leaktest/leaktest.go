// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"go.uber.org/goleak"

	"github.com/zkrecipes/zkrecipes/internal/testing/watchdog"
)

// rounds is how often goleak looks, each time for nearly half a second. One is too few:
// go-zookeeper's Close waits up to a second for a reply that does not come once its loop
// has ended. A session does not wait for that if it is closed with a shorter timeout, or
// was never established.
const rounds = 8

// Main runs tests, fails if they leave goroutines behind, and exits.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
func Main(tests interface{ Run() int }) { os.Exit(Checked{tests}.Run()) }

// Checked is tests that fail if they leave goroutines behind, or hang (see package
// watchdog).
type Checked struct{ Tests interface{ Run() int } }

// Run runs the tests and returns their exit code.
func (c Checked) Run() int {
	stop := watchdog.Start()
	code := c.Tests.Run()
	hung := stop()
	if code != 0 {
		return code // goroutines that a failed test left tell nothing more
	}
	if hung != nil {
		fmt.Fprintln(os.Stderr, hung)
		return 1
	}
	if err := find(rounds); err != nil {
		fmt.Fprintln(os.Stderr, "the tests passed, and left goroutines behind:", err)
		return 1
	}
	return 0
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

// SideBySide is tests of which more run at a time than there are processors, unless the
// command line says how many: most of them wait most of the time, for a session to expire
// or a process to start.
type SideBySide struct {
	Tests     interface{ Run() int }
	Processor int // how many run for each processor; 0: 4
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

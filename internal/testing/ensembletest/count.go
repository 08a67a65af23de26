package ensembletest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

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

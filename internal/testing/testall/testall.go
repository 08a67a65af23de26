// Package testall tells the tests of `make test-all` from those of `make test`, which
// leaves out or shortens what takes minutes.
package testall

import (
	"os"
	"testing"
)

// On reports whether ZKRECIPES_TEST_ALL is set, as by make test-all.
func On() bool { return os.Getenv("ZKRECIPES_TEST_ALL") != "" }

// Require skips the test in any other run.
func Require(tb testing.TB) {
	tb.Helper()
	if !On() {
		tb.Skip("SKIPPED: make test-all runs it (ZKRECIPES_TEST_ALL=1)")
	}
}

// Count is how often a test does something: all times, or some where that would take long.
func Count(some, all int) int {
	if On() {
		return all
	}
	return some
}

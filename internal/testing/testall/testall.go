// Package testall distinguishes a run of `make test-all` from one of `make test`, which
// skips or shortens the tests that take minutes.
package testall

import (
	"os"
	"testing"
)

// On reports whether ZKRECIPES_TEST_ALL is set. make test-all sets it.
func On() bool { return os.Getenv("ZKRECIPES_TEST_ALL") != "" }

// Require skips the test unless On.
func Require(tb testing.TB) {
	tb.Helper()
	if !On() {
		tb.Skip("SKIPPED: make test-all runs it (ZKRECIPES_TEST_ALL=1)")
	}
}

// Count returns how many times a test repeats something: all if On, else some.
func Count(some, all int) int {
	if On() {
		return all
	}
	return some
}

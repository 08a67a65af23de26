package interop_test

import (
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/testing/peers"
)

// contender returns the command of a library's contender.
func contender(t testing.TB, library string) []string {
	return installed(t)(peers.Contender(t, library, classes))
}

// installed skips the test if the library is not installed.
func installed(t testing.TB) func([]string, error) []string {
	return func(command []string, err error) []string {
		t.Helper()
		if err != nil {
			t.Skipf("SKIPPED, a shared wait queue is not tested: %v", err)
		}
		return command
	}
}

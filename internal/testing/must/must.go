// Package must ends a test on an unexpected error.
package must

import "testing"

// Get returns the value of a call, or ends the test if the call returned an error:
//
//	h := must.Get(l.Acquire(ctx))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Report fails the test if err is not nil, but does not end it.
func Report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

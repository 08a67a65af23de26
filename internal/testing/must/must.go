// Package must ends a test that meets an error which it does not expect.
package must

import "testing"

// Get returns what a call has returned, and ends the test if that was an error:
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

// Report fails the test if err is not nil, and lets it go on.
func Report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

package recipestest

import (
	"context"
	"testing"
	"time"
)

// Part is one test of the contract, for a program that checks an implementation without
// go test. A test file calls [Run] instead.
type Part struct {
	// Group is the recipe or the property that the part tests, such as "lock".
	Group string

	// Name is the promise that the part tests.
	Name string

	run func(*fixture)
}

// Parts returns the tests of the contract, which are those that Run runs.
func Parts() []Part {
	var parts []Part
	for _, g := range groups() {
		for _, t := range g.tests {
			parts = append(parts, Part{g.name, t.name, t.run})
		}
	}
	return parts
}

// Result is the outcome of a Part.
type Result struct {
	// Failures are the checks that failed: for each, what was found and the line of the check.
	// The part has not failed if there are none.
	Failures []string

	// Skipped is why the part has tested nothing. "" means that it has.
	Skipped string
}

// overrun is how long Check waits for a part whose context has ended.
const overrun = 30 * time.Second

// Check runs the part, and returns when it has ended. Several parts may run at the same time.
//
// The part fails if ctx ends first. If the implementation then does not return from a call
// for half a minute, Check returns, and the goroutine of the part stays.
func (p Part) Check(ctx context.Context, env Env) Result {
	return check(ctx, p.Group+"/"+p.Name, func(t testing.TB) { p.run(newFixture(t, env)) })
}

func check(ctx context.Context, name string, test func(testing.TB)) Result {
	t := newRunner(ctx, name)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.run(func() { test(t) })
	}()
	select {
	case <-ended:
		return t.result()
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(overrun):
		t.Errorf("a call did not return within %v of the end of its context", overrun)
	}
	return t.result()
}

package recipestest

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// runner is the testing.TB of a part that go test does not run. It has the methods that the
// tests of the contract call.
type runner struct {
	testing.TB // nil: only package testing can implement all of its methods
	name       string
	ctx        context.Context
	end        context.CancelFunc

	mu       sync.Mutex
	cleanups []func()
	failures []string
	skipped  string
	helpers  map[string]bool // names of functions
}

func newRunner(ctx context.Context, name string) *runner {
	t := &runner{name: name, helpers: map[string]bool{}}
	t.ctx, t.end = context.WithCancel(ctx)
	return t
}

// run calls f and then the clean-up functions. As in package testing, the context ends before
// these.
func (t *runner) run(f func()) {
	t.call(f)
	t.end()
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		last := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		t.call(last)
	}
}

// call calls f in a goroutine that Fatal can end, and waits for it.
func (t *runner) call(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if v := recover(); v != nil {
				t.fail(fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		f()
	}()
	<-ended
}

func (t *runner) result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Result{slices.Clone(t.failures), t.skipped}
}

func (t *runner) fail(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, text)
}

// at adds the line of the check to a text: the line of the innermost function that is no
// helper.
func (t *runner) at(text string) string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // starts at the caller of Error, Fatal and so on
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		frame, more := frames.Next()
		if !t.helpers[frame.Function] || !more {
			return fmt.Sprintf("%s (%s:%d)", strings.TrimSpace(text), filepath.Base(frame.File), frame.Line)
		}
	}
}

func (t *runner) Helper() {
	pcs := make([]uintptr, 1)
	frame, _ := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)]).Next()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.helpers[frame.Function] = true
}

func (t *runner) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *runner) skip(why string) {
	t.mu.Lock()
	t.skipped = why
	t.mu.Unlock()
	runtime.Goexit()
}

func (t *runner) Name() string             { return t.name }
func (t *runner) Context() context.Context { return t.ctx }
func (t *runner) Failed() bool             { return len(t.result().Failures) > 0 }

func (t *runner) Error(args ...any)                 { t.fail(t.at(fmt.Sprintln(args...))) }
func (t *runner) Errorf(format string, args ...any) { t.fail(t.at(fmt.Sprintf(format, args...))) }

func (t *runner) Fatal(args ...any) {
	t.fail(t.at(fmt.Sprintln(args...)))
	runtime.Goexit()
}

func (t *runner) Fatalf(format string, args ...any) {
	t.fail(t.at(fmt.Sprintf(format, args...)))
	runtime.Goexit()
}

func (t *runner) Skip(args ...any)                 { t.skip(strings.TrimSpace(fmt.Sprintln(args...))) }
func (t *runner) Skipf(format string, args ...any) { t.skip(fmt.Sprintf(format, args...)) }

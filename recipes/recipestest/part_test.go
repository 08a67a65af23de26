package recipestest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

// The result of a part has what go test would have printed.
func TestTheResultOfAPart(t *testing.T) {
	order := []string{}
	for _, test := range []struct {
		name     string
		part     func(testing.TB)
		failures []string // expressions
		skipped  string
	}{
		{"passes", func(tb testing.TB) { must.Do(tb, nil) }, nil, ""},
		{"goes on after Errorf", func(tb testing.TB) {
			tb.Errorf("found %d", 1)
			tb.Error("and", errors.New("another"))
		}, []string{`^found 1 \(part_test\.go:\d+\)$`, `^and another \(part_test\.go:\d+\)$`}, ""},
		{"ends at Fatal, whose line is that of the caller of helpers", func(tb testing.TB) {
			f := &fixture{TB: tb}
			f.must(errors.New("fatal"))
			tb.Error("after Fatal")
		}, []string{`^fatal \(part_test\.go:\d+\)$`}, ""},
		{"panics", func(testing.TB) { panic("a defect") }, []string{`^panic: a defect\n(.*\n)*.*part_test\.go`}, ""},
		{"is skipped", func(tb testing.TB) {
			tb.Skipf("no %s", "containers")
			tb.Error("after Skipf")
		}, nil, "no containers"},
		{"cleans up in reverse, and after the context has ended", func(tb testing.TB) {
			ctx := tb.Context()
			for _, name := range []string{"first", "second"} {
				tb.Cleanup(func() { order = append(order, name); must.Do(tb, context.Cause(ctx)) })
			}
		}, []string{`context canceled`, `context canceled`}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := check(t.Context(), "group/part", test.part)
			if r.Skipped != test.skipped || len(r.Failures) != len(test.failures) {
				t.Fatalf("%+v", r)
			}
			for i, f := range r.Failures {
				if !regexp.MustCompile(test.failures[i]).MatchString(f) {
					t.Errorf("%q; want a match of %q", f, test.failures[i])
				}
			}
		})
	}
	if !slices.Equal(order, []string{"second", "first"}) {
		t.Errorf("the order of the clean-up is %q", order)
	}
}

// An implementation that never returns must not hang the program that checks it.
func TestAPartThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		returns := make(chan struct{})
		defer close(returns)
		r := check(ctx, "group/part", func(testing.TB) { <-returns })
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0], "did not return") {
			t.Errorf("%+v", r)
		}
	})
}

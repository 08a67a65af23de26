package compare_test

import (
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/compare"
)

// counts compares two texts by their counts, and returns what is written.
func counts(t *testing.T, old, new string, units ...string) (compare.CountsResult, string) {
	t.Helper()
	var sides [2]*compare.Side
	for i, text := range []string{old, new} {
		var err error
		if sides[i], err = compare.ReadCounts(strings.NewReader(text), []string{"old", "new"}[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := compare.Counts(sides[0], sides[1], units)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

func TestCountsAreComparedExactly(t *testing.T) {
	const two = "BenchmarkX/contenders=9-2 9 100 ns/op 2 reads/op 1 writes/op\n"
	for name, c := range map[string]struct {
		old, new, says string
		worse          int
	}{
		"equal":                {two, two, "0 better, 0 worse of 2 counts", 0},
		"slower":               {two, "BenchmarkX/contenders=9-2 9 999 ns/op 2 reads/op 1 writes/op\n", "0 worse", 0},
		"another machine":      {two, "BenchmarkX/contenders=9-64 9 100 ns/op 2 reads/op 1 writes/op\n", "0 worse", 0},
		"one processor":        {two, "BenchmarkX/contenders=9 9 100 ns/op 2 reads/op 1 writes/op\n", "0 worse", 0},
		"a read more":          {two, "BenchmarkX/contenders=9-2 9 100 ns/op 3 reads/op 1 writes/op\n", "reads/op  2.000  3.000    WORSE", 1},
		"one read more in 999": {two, "BenchmarkX/contenders=9-2 9 100 ns/op 2.001 reads/op 1 writes/op\n", "2.001", 1},
		"a read less":          {two, "BenchmarkX/contenders=9-2 9 100 ns/op 1 reads/op 1 writes/op\n", "1 better, 0 worse", 0},
		"another request":      {two, "BenchmarkX/contenders=9-2 9 100 ns/op 2 reads/op 1 writes/op 1 syncs/op\n", "syncs/op  0.000  1.000    WORSE", 1},
		"no syncs any more":    {"BenchmarkX/contenders=9-2 9 1 syncs/op 1 reads/op\n", "BenchmarkX/contenders=9-2 9 1 reads/op\n", "1 better", 0},
		"worse though invalid": {two, "invalid: too slow\n\nBenchmarkX/contenders=9-2 9 100 ns/op 3 reads/op 1 writes/op\n", "1 worse", 1},
		"a benchmark missing":  {two + "BenchmarkY 1 1 reads/op\n", two, "missing in new, which counts as worse: Y", 1},
		"a benchmark more":     {two, two + "BenchmarkY 1 1 reads/op\n", "only in new: Y", 0},
		"not exact":            {two, two + "BenchmarkX/contenders=9-2 9 100 ns/op 3 reads/op 1 writes/op\n", "warning: 1 counts differ", 0},
		"worse in each trial":  {two, "BenchmarkX/contenders=9-2 9 2.5 reads/op 1 writes/op\nBenchmarkX/contenders=9-2 9 3 reads/op 1 writes/op\n", "2.500 to 3.000", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if r, out := counts(t, c.old, c.new); r.Worse() != c.worse || !strings.Contains(out, c.says) {
				t.Errorf("%d worse; want %d, and %q in\n%s", r.Worse(), c.worse, c.says, out)
			}
		})
	}
	if r, _ := counts(t, two, "BenchmarkX/contenders=9-2 9 3 reads/op 1 writes/op\n", "writes/op"); r.Worse() != 0 {
		t.Errorf("reads are worse, though only writes were asked for")
	}
}

func TestCountsWithNothingInCommonAreAnError(t *testing.T) {
	a, _ := compare.ReadCounts(strings.NewReader("BenchmarkX 1 1 reads/op\n"), "a", nil)
	b, _ := compare.ReadCounts(strings.NewReader("BenchmarkX 1 1 ns/op\nBenchmarkY 1 1 reads/op\n"), "b", nil)
	if _, err := compare.Counts(a, b, []string{"writes/op"}); err == nil {
		t.Error("no error")
	}
}

package compare_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/compare"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// trials writes two sides of interleaved trials of several benchmarks. Their times vary by some
// per cent and drift together, as on a shared machine. The first benchmark of the second side is
// slower by that factor.
func trials(seed uint64, count int, slower float64) (a, b string) {
	random := rand.New(rand.NewPCG(seed, 0))
	var texts [2]strings.Builder
	for i := range count {
		drift := 1 + 0.02*math.Sin(float64(i)/3)
		for side := range texts {
			for n := range 5 {
				ns := 1e6 * float64(n+1) * drift * math.Exp(0.03*random.NormFloat64())
				if side == 1 && n == 0 {
					ns *= slower
				}
				fmt.Fprintf(&texts[side], "BenchmarkLine/contenders=%d-2 100 %.0f ns/op %.1f handoffs/s\n", n+1, ns, 1e9/ns)
			}
		}
	}
	const units = "Unit handoffs/s better=higher\n"
	return units + texts[0].String(), units + texts[1].String()
}

func side(t *testing.T, name, text string) *compare.Side {
	t.Helper()
	s := must.Get(compare.Read(strings.NewReader(text), name, nil))(t)
	return s
}

func compared(t *testing.T, a, b *compare.Side) compare.Result {
	t.Helper()
	r := must.Get(compare.Compare(a, b, compare.DefaultOptions()))(t)
	return r
}

func TestPlantedRegressionIsFound(t *testing.T) {
	for seed := range uint64(8) {
		a, b := trials(seed, 20, 1.10)
		r := compared(t, side(t, "A", a), side(t, "B", b))
		// The same trials are slower in ns and fewer in handoffs/s.
		if r.Worse != 2 || r.Better != 0 {
			t.Errorf("seed %d: %d worse, %d better; want 2 and 0", seed, r.Worse, r.Better)
		}
		for _, row := range r.Rows {
			if (row.Verdict == compare.Worse) != (row.Benchmark == "Line/contenders=1-2") {
				t.Errorf("seed %d: %s is %s", seed, row.Benchmark, row.Verdict)
			}
		}
		// The other way round it is an improvement.
		if r, _ := compare.Compare(side(t, "B", b), side(t, "A", a), compare.DefaultOptions()); r.Worse != 0 || r.Better != 2 {
			t.Errorf("seed %d, turned round: %d worse, %d better; want 0 and 2", seed, r.Worse, r.Better)
		}
	}
}

func TestEqualSidesAreQuiet(t *testing.T) {
	for seed := range uint64(15) {
		a, b := trials(seed, 20, 1)
		for _, other := range []string{a, b} {
			r, err := compare.Compare(side(t, "A", a), side(t, "A again", other), compare.DefaultOptions())
			if err != nil || r.Worse+r.Better != 0 {
				t.Errorf("seed %d: %d worse, %d better, %v; want quiet", seed, r.Worse, r.Better, err)
			}
		}
	}
}

func TestSmallChangeDoesNotCount(t *testing.T) {
	a, b := trials(1, 40, 1.10)
	options := compare.DefaultOptions()
	options.Effect = 0.2
	r, err := compare.Compare(side(t, "A", a), side(t, "B", b), options)
	if err != nil || r.Worse != 0 {
		t.Errorf("%d worse, %v; want none of at least 20 %%", r.Worse, err)
	}
	slight := 0
	for _, row := range r.Rows {
		if row.Verdict == compare.Slight {
			slight++
		}
	}
	if slight != 2 {
		t.Errorf("%d slight changes; want 2", slight)
	}
}

func TestCorrectionIsHolms(t *testing.T) {
	// The change of one benchmark is significant at 5 % alone, but not among ten comparisons.
	a, b := "Unit x better=lower\n", "Unit x better=lower\n"
	for n := range 10 {
		for i := range 4 {
			shift := 0
			if n == 0 {
				shift = 100
			}
			a += fmt.Sprintf("BenchmarkB%d 1 %d x\n", n, 100+i)
			b += fmt.Sprintf("BenchmarkB%d 1 %d x\n", n, 100+i+shift)
		}
	}
	r := compared(t, side(t, "A", a), side(t, "B", b))
	if row := r.Rows[0]; row.P >= 0.05 || math.Abs(row.Adjusted-10*row.P) > 1e-9 || row.Verdict != compare.Same {
		t.Errorf("p %v, corrected %v, verdict %s; want ten times p and no verdict", row.P, row.Adjusted, row.Verdict)
	}
	if !strings.Contains(strings.Join(r.Warnings, "\n"), "too few trials") {
		t.Errorf("warnings %q do not say that the trials are too few", r.Warnings)
	}
}

func TestUnitWithoutDirectionIsNotJudged(t *testing.T) {
	var a, b string
	for i := range 20 {
		a += fmt.Sprintf("BenchmarkX 1 %d furlongs\n", 100+i%3)
		b += fmt.Sprintf("BenchmarkX 1 %d furlongs\n", 200+i%3)
	}
	r, err := compare.Compare(side(t, "A", a), side(t, "B", b), compare.DefaultOptions())
	if err != nil || r.Worse != 0 || r.Rows[0].Verdict != compare.Changed {
		t.Errorf("%+v, %v; want changed", r.Rows, err)
	}
}

// Files may be concatenated, and a resumed sweep appends to its own file.
func TestInvalidResultsAtTheEndDoNotMarkLaterOnes(t *testing.T) {
	valid := record.Record{Recipe: load.Lock, Workload: load.Drain, Contenders: 2, Transport: "direct"}
	valid.Operations, valid.Elapsed = 1, time.Second
	invalid := valid
	invalid.Invalid = []string{"zkbench was the limit"}
	var text, lines bytes.Buffer
	for range 2 {
		w, l := &record.Writer{Output: &text, Environment: record.Environment{}}, &record.JSONWriter{Output: &lines, Environment: record.Environment{}}
		for _, r := range []record.Record{valid, invalid} {
			must.Do(t, errors.Join(w.Write(r), l.Write(r)))
		}
	}
	for name, file := range map[string]*bytes.Buffer{"text": &text, "records": &lines} {
		a := side(t, "A", file.String())
		r, err := compare.Compare(a, a, compare.DefaultOptions())
		if err != nil || r.Rows[0].N != 2 || a.Invalid != 2 {
			t.Errorf("%s: %d results, %d invalid, %v; want 2 of each:\n%s", name, r.Rows[0].N, a.Invalid, err, text.String())
		}
	}
}

// The trials of a file are in a random order.
func TestOrderIsTheSameForEveryFile(t *testing.T) {
	var first []string
	for _, order := range [][]int{{100, 9, 10}, {9, 10, 100}, {10, 100, 9}} {
		text := ""
		for _, n := range order {
			text += fmt.Sprintf("BenchmarkX/contenders=%d/via=direct 1 5 ns/op 7 handoffs/s\n", n)
		}
		r := compared(t, side(t, "A", text), side(t, "B", text))
		var got []string
		for _, row := range r.Rows {
			got = append(got, row.Benchmark+" "+row.Unit)
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) || !strings.Contains(got[0], "=9/") || !strings.Contains(got[5], "=100/") {
			t.Errorf("of %v: %q", order, got)
		}
	}
}

// Results of two servers must not look like trials of one.
func TestSideOfTwoEnvironmentsCausesAWarning(t *testing.T) {
	const one, two = "zk-mode: embedded\nBenchmarkX 1 5 ns/op\n", "zk-mode: standalone\nBenchmarkX 1 500 ns/op\n"
	for text, want := range map[string]int{one + one: 0, one + two: 1} {
		r := compared(t, side(t, "old", text), side(t, "new", two))
		if got := strings.Count(strings.Join(r.Warnings, "\n"), "old: its results differ in zk-mode"); got != want {
			t.Errorf("%d warnings; want %d: %q", got, want, r.Warnings)
		}
	}
}

func TestFileWithoutResultsIsAnError(t *testing.T) {
	for _, text := range []string{"", "PASS\n", "{\"zkbench\":1}\n", "{]\n", "{\"zkbench\":99}\n"} {
		if s, err := compare.Read(strings.NewReader(text), "file", nil); err == nil || !strings.Contains(err.Error(), "file") {
			t.Errorf("%q gave %+v, %v", text, s, err)
		}
	}
	if _, err := compare.Read(strings.NewReader("PASS\n"), "file", nil); !errors.Is(err, compare.ErrNoResults) {
		t.Error(err)
	}
	a, b := side(t, "A", "BenchmarkX 1 5 ns/op\n"), side(t, "B", "BenchmarkY 1 5 ns/op\n")
	if _, err := compare.Compare(a, b, compare.DefaultOptions()); err == nil {
		t.Error("sides with nothing in common were compared")
	}
}

func TestOutput(t *testing.T) {
	a, b := trials(1, 20, 1.10)
	a += "BenchmarkGone 1 5 ns/op\n"
	r := compared(t, side(t, "old", a), side(t, "new", b))
	var out bytes.Buffer
	must.Do(t, r.Write(&out))
	file := filepath.Join("testdata", "compare.txt")
	if *update {
		must.Do(t, errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(file, out.Bytes(), 0o666)))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%v; %s differs (rewrite with -update):\n%s", err, file, out.String())
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

func counts(t *testing.T, old, new string, units ...string) (compare.Result, string) {
	t.Helper()
	var sides [2]*compare.Side
	for i, text := range []string{old, new} {
		var err error
		if sides[i], err = compare.ReadCounts(strings.NewReader(text), []string{"old", "new"}[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	r := must.Get(compare.Counts(sides[0], sides[1], compare.Options{Units: units}))(t)
	var out strings.Builder
	must.Do(t, r.Write(&out))
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
		"not exact":            {two, two + "BenchmarkX/contenders=9-2 9 100 ns/op 3 reads/op 1 writes/op\n", "warning: 1 count not exact", 0},
		"worse in each trial":  {two, "BenchmarkX/contenders=9-2 9 2.5 reads/op 1 writes/op\nBenchmarkX/contenders=9-2 9 3 reads/op 1 writes/op\n", "2.500 to 3.000", 1},
	} {
		t.Run(name, func(t *testing.T) {
			if r, out := counts(t, c.old, c.new); r.Worse != c.worse || !strings.Contains(out, c.says) {
				t.Errorf("%d worse; want %d, and %q in\n%s", r.Worse, c.worse, c.says, out)
			}
		})
	}
	if r, _ := counts(t, two, "BenchmarkX/contenders=9-2 9 3 reads/op 1 writes/op\n", "writes/op"); r.Worse != 0 {
		t.Errorf("reads are worse, though only writes were asked for")
	}
}

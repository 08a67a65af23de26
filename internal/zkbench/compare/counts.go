package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/table"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// countUnits are the units that [Counts] compares by default: what a handoff sends and
// receives.
var countUnits = []string{unit.Reads, unit.Writes, unit.Syncs, unit.Events, unit.Bytes, unit.Fallbacks, unit.Asked}

// ReadCounts is [Read] for [Counts]. It keeps invalid results, because a slow load generator
// falsifies times but not counts. It drops GOMAXPROCS and the package from names, so that
// machines of any size can be compared.
func ReadCounts(r io.Reader, name string, filter *benchproc.Filter) (*Side, error) {
	side := newSide(name)
	side.counts = true
	return side, side.read(r, filter)
}

// withoutProcs is the name of a result without its GOMAXPROCS.
func withoutProcs(name benchfmt.Name) string {
	base, parts := name.Parts()
	if n := len(parts); n > 0 && parts[n-1][0] == '-' {
		parts = parts[:n-1]
	}
	return string(base) + string(slices.Concat(parts...))
}

// CountsResult is the comparison of two sides by counts.
type CountsResult struct {
	Old, New string
	Rows     []CountsRow
	Missing  []string // benchmarks that the new side does not have
	Extra    []string // benchmarks that the old side does not have
}

// CountsRow is the comparison of one count of one benchmark.
type CountsRow struct {
	Benchmark, Unit string
	Old, New        [2]float64 // the smallest and the largest of the trials
	Verdict         Verdict
}

// Counts compares two sides of [ReadCounts] without statistics, because a count is the
// same on every machine. One trial of each is enough. A benchmark became worse if its
// smallest new count is larger than its largest old one. Counts that overlap without being
// equal are not exact, and are [Changed]. A count that only one of two results has is 0 in
// the other. Without units, it compares countUnits.
func Counts(a, b *Side, units []string) (CountsResult, error) {
	if len(units) == 0 {
		units = countUnits
	}
	r := CountsResult{Old: a.Name, New: b.Name, Missing: missing(a, b), Extra: missing(b, a)}
	done := map[key]bool{}
	for _, k := range slices.Concat(a.order, b.order) {
		if done[k] || !slices.Contains(units, k.unit) || !a.has(k.benchmark) || !b.has(k.benchmark) {
			continue
		}
		done[k] = true
		r.Rows = append(r.Rows, countsRow(k, a.values[k], b.values[k]))
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("%s and %s have no count of a benchmark in common", a.Name, b.Name)
	}
	slices.SortStableFunc(r.Rows, func(a, b CountsRow) int { return byNumbers(a.Benchmark, b.Benchmark) })
	return r, nil
}

func countsRow(k key, old, new []float64) CountsRow {
	r := CountsRow{Benchmark: k.benchmark, Unit: k.unit, Old: span(old), New: span(new)}
	switch {
	case r.New[0] > r.Old[1]:
		r.Verdict = Worse
	case r.New[1] < r.Old[0]:
		r.Verdict = Better
	case r.New == r.Old && r.New[0] == r.New[1]:
		r.Verdict = Same
	default:
		r.Verdict = Changed
	}
	return r
}

func span(values []float64) [2]float64 {
	if len(values) == 0 {
		return [2]float64{}
	}
	return [2]float64{slices.Min(values), slices.Max(values)}
}

// Worse is how many counts grew, plus how many benchmarks are missing: without a result,
// nothing shows that they did not grow.
func (r CountsResult) Worse() int { return r.number(Worse) + len(r.Missing) }

func (r CountsResult) number(v Verdict) (n int) {
	for _, row := range r.Rows {
		if row.Verdict == v {
			n++
		}
	}
	return n
}

// Write writes the counts that differ, and the verdict as the last line.
func (r CountsResult) Write(w io.Writer) error {
	out := &strings.Builder{}
	rows := [][]string{{"count", "unit", r.Old, r.New, "verdict"}}
	for _, row := range r.Rows {
		if row.Verdict != Same {
			rows = append(rows, []string{row.Benchmark, row.Unit, spanned(row.Old), spanned(row.New), string(row.Verdict)})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(out, table.Align(rows, 2))
	}
	for _, name := range r.Missing {
		fmt.Fprintf(out, "missing in %s, which counts as worse: %s\n", r.New, name)
	}
	for _, name := range r.Extra {
		fmt.Fprintf(out, "only in %s: %s\n", r.New, name)
	}
	if n := r.number(Changed); n > 0 {
		fmt.Fprintf(out, "warning: %d counts differ from trial to trial, so they are not exact\n", n)
	}
	fmt.Fprintf(out, "%d better, %d worse of %d counts (exact)\n", r.number(Better), r.Worse(), len(r.Rows))
	_, err := io.WriteString(w, out.String())
	return err
}

func spanned(s [2]float64) string {
	least := benchunit.Scale(s[0], benchunit.Decimal)
	if s[0] == s[1] {
		return least
	}
	return least + " to " + benchunit.Scale(s[1], benchunit.Decimal)
}

package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
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

func withoutProcs(name benchfmt.Name) string {
	base, parts := name.Parts()
	if n := len(parts); n > 0 && parts[n-1][0] == '-' {
		parts = parts[:n-1]
	}
	return string(base) + string(slices.Concat(parts...))
}

// Counts compares two sides of [ReadCounts] without statistics, because a count is the
// same on every machine. One trial of each is enough. A benchmark became worse if its
// smallest new count is larger than its largest old one, or if the new side lacks the benchmark,
// because nothing then shows that its counts did not grow. Counts that overlap without being equal
// are not exact, and are [Changed]. A count that only one of two results has is 0 in the other.
// Without Options.Units, it compares countUnits. The other options do not apply.
func Counts(a, b *Side, o Options) (Result, error) {
	if len(o.Units) == 0 {
		o.Units = countUnits
	}
	r := Result{Options: o, Old: a.Name, New: b.Name, OnlyOld: missing(a, b), OnlyNew: missing(b, a), exact: true}
	r.Worse = len(r.OnlyOld)
	done := map[key]bool{}
	for _, k := range slices.Concat(a.order, b.order) {
		if !done[k] && slices.Contains(o.Units, k.unit) && a.has(k.benchmark) && b.has(k.benchmark) {
			done[k] = true
			row := Row{Benchmark: k.benchmark, Unit: k.unit, Old: span(a.values[k]), New: span(b.values[k])}
			r.give(&row, exactly(row.Old, row.New))
			r.Rows = append(r.Rows, row)
		}
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("%s and %s have no count of a benchmark in common", a.Name, b.Name)
	}
	r.sort()
	return r, nil
}

func exactly(old, new benchmath.Summary) Verdict {
	switch {
	case new.Lo > old.Hi:
		return Worse
	case new.Hi < old.Lo:
		return Better
	case old.Lo == old.Hi && new.Lo == new.Hi:
		return Same
	}
	return Changed
}

func span(values []float64) (s benchmath.Summary) {
	if len(values) > 0 {
		s.Lo, s.Hi = slices.Min(values), slices.Max(values)
	}
	return s
}

func (r Result) writeCounts(out *strings.Builder) {
	rows := [][]string{{"count", "unit", r.Old, r.New, "verdict"}}
	inexact := 0
	for _, row := range r.Rows {
		if row.Verdict != Same {
			rows = append(rows, []string{row.Benchmark, row.Unit, spanned(row.Old), spanned(row.New), string(row.Verdict)})
		}
		if row.Verdict == Changed {
			inexact++
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(out, table.Align(rows, 2))
	}
	for _, name := range r.OnlyOld {
		fmt.Fprintf(out, "missing in %s, which counts as worse: %s\n", r.New, name)
	}
	for _, name := range r.OnlyNew {
		fmt.Fprintf(out, "only in %s: %s\n", r.New, name)
	}
	if inexact > 0 {
		fmt.Fprintf(out, "warning: %s not exact, because trials differ\n", english.Count(inexact, "count"))
	}
	fmt.Fprintf(out, "%d better, %d worse of %s (exact)\n", r.Better, r.Worse, english.Count(len(r.Rows), "count"))
}

func spanned(s benchmath.Summary) string {
	least := benchunit.Scale(s.Lo, benchunit.Decimal)
	if s.Lo == s.Hi {
		return least
	}
	return least + " to " + benchunit.Scale(s.Hi, benchunit.Decimal)
}

// Package compare finds what became better or worse between two sets of results, so that a
// build can depend on it.
//
//  1. Collect the results of each side with [Read].
//  2. Compare them with [Compare].
//  3. Show the [Result] with [Result.Write] and act on [Result.Worse].
//
// Compare covers each unit of each benchmark that both sides have: medians with confidence
// intervals, and the Mann-Whitney U test (package benchmath, as benchstat does it). A change
// counts only if it is significant after Holm's correction for the number of comparisons,
// and at least as large as Options.Effect. The results' unit metadata defines which
// direction is better.
//
// [Paired] compares trials of both sides that were run in pairs. [Counts] compares counts,
// which are the same on every machine, without statistics.
//
// Holm and not Benjamini-Hochberg, because a gate must not fail by chance: Holm bounds the
// probability of any false alarm in the whole comparison. Benjamini-Hochberg bounds the
// share of false alarms, and so finds more if a person reviews them all.
package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

// Options decide which changes count.
type Options struct {
	// Alpha bounds the probability that the comparison of two equal sides shows
	// any change at all.
	Alpha float64
	// Confidence is the level of the medians' intervals, from 0 to 1.
	Confidence float64
	// Effect is the smallest change that counts, as a share of the old median:
	// 0.05 is 5 %.
	Effect float64
	// Units are the units to compare, in benchfmt's base units (sec/op, not ns/op). If it
	// is empty, all are compared.
	Units []string
}

func (o Options) compares(k key) bool { return len(o.Units) == 0 || slices.Contains(o.Units, k.unit) }

// DefaultOptions are an alpha of 5 %, intervals of 95 % and an effect of 5 %.
func DefaultOptions() Options { return Options{Alpha: 0.05, Confidence: 0.95, Effect: 0.05} }

// Verdict is the result for one row.
type Verdict string

const (
	// Same means that no change was shown. That does not prove that nothing changed.
	Same Verdict = "~"
	// Better and Worse are changes that count.
	Better Verdict = "better"
	Worse  Verdict = "WORSE"
	// Changed is a change that counts, if the results do not define which direction is better.
	Changed Verdict = "changed"
	// Slight is a change that is significant, but too small to count.
	Slight Verdict = "slight"
)

// Row is the comparison of one unit of one benchmark.
type Row struct {
	Benchmark, Unit string
	Old, New        benchmath.Summary // medians, with their intervals; of Counts only the range
	N, M            int               // trials of the old and of the new side
	Change          float64           // of the median: 0.1 is 10 % more
	P               float64           // of the U test
	Adjusted        float64           // after Holm's correction
	Verdict         Verdict
}

// Result is the comparison of two sides.
type Result struct {
	Options       Options
	Old, New      string // names of the sides
	Rows          []Row
	OnlyOld       []string // benchmarks that only one side has
	OnlyNew       []string
	Warnings      []string
	TooFew        int // rows that have too few trials to show anything
	Better, Worse int // rows that became better or worse; of Counts those in OnlyOld are worse too

	exact bool                   // of Counts: there is no test
	test  string                 // the test's name
	least func(n, m int) float64 // the smallest p-value that it can give
}

// Compare compares two sides. It is an error if they have no benchmark and unit in common.
func Compare(a, b *Side, o Options) (Result, error) {
	return compareBy(Result{Options: o, Old: a.Name, New: b.Name, test: "Mann-Whitney U", least: leastP}, a, b, compare)
}

func compareBy(r Result, a, b *Side, row func(k key, old, new []float64, o Options) Row) (Result, error) {
	for _, k := range a.order {
		if b.values[k] != nil && r.Options.compares(k) {
			r.Rows = append(r.Rows, row(k, a.values[k], b.values[k], r.Options))
		}
	}
	if len(r.Rows) == 0 {
		return r, fmt.Errorf("%s and %s have no benchmark and unit in common; the names must be identical", a.Name, b.Name)
	}
	r.sort()
	holm(r.Rows)
	for i := range r.Rows {
		unit := r.Rows[i].Unit
		r.judge(&r.Rows[i], cmp.Or(b.units.GetBetter(unit), a.units.GetBetter(unit)))
	}
	r.OnlyOld, r.OnlyNew = missing(a, b), missing(b, a)
	r.warn(a, b)
	return r, nil
}

// sort sorts the rows by benchmark. Files have their trials in the order of the run, which is
// random.
func (r *Result) sort() {
	slices.SortStableFunc(r.Rows, func(a, b Row) int { return byNumbers(a.Benchmark, b.Benchmark) })
}

func compare(k key, old, new []float64, o Options) Row {
	thresholds := benchmath.DefaultThresholds
	thresholds.CompareAlpha = o.Alpha
	a, b := benchmath.NewSample(old, &thresholds), benchmath.NewSample(new, &thresholds)
	row := Row{
		Benchmark: k.benchmark, Unit: k.unit, N: len(old), M: len(new),
		Old: benchmath.AssumeNothing.Summary(a, o.Confidence),
		New: benchmath.AssumeNothing.Summary(b, o.Confidence),
		P:   benchmath.AssumeNothing.Compare(a, b).P,
	}
	row.Change = change(row.Old.Center, row.New.Center)
	return row
}

func change(old, new float64) float64 {
	switch {
	case old == new:
		return 0
	case old == 0:
		return math.Inf(int(math.Copysign(1, new)))
	}
	return (new - old) / math.Abs(old)
}

// holm corrects the rows' p-values for their number (Holm 1979): it multiplies the i-th
// smallest of m by m-i+1, and none may be smaller than the one before it.
func holm(rows []Row) {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rows[i].P, rows[j].P) })
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, rows[i].P*float64(len(rows)-rank)))
		rows[i].Adjusted = least
	}
}

func (r *Result) judge(row *Row, better int) {
	switch {
	case row.Adjusted >= r.Options.Alpha || row.Change == 0:
		r.give(row, Same)
	case math.Abs(row.Change) < r.Options.Effect:
		r.give(row, Slight)
	case better == 0:
		r.give(row, Changed)
	case (row.Change > 0) == (better > 0):
		r.give(row, Better)
	default:
		r.give(row, Worse)
	}
}

func (r *Result) give(row *Row, v Verdict) {
	switch row.Verdict = v; v {
	case Better:
		r.Better++
	case Worse:
		r.Worse++
	}
}

func missing(a, b *Side) []string {
	have := map[string]bool{}
	for _, k := range b.order {
		have[k.benchmark] = true
	}
	var names []string
	for _, k := range a.order {
		if !have[k.benchmark] && !slices.Contains(names, k.benchmark) {
			names = append(names, k.benchmark)
		}
	}
	slices.SortFunc(names, byNumbers)
	return names
}

// byNumbers compares names with numbers in them by value: contenders=9 comes before
// contenders=10.
func byNumbers(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

func (r *Result) warn(a, b *Side) {
	say := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	for _, side := range []*Side{a, b} {
		if side.Invalid > 0 {
			say("%s: %s left out as invalid", side.Name, english.Count(side.Invalid, "result"))
		}
		if keys := side.mixed(); len(keys) > 0 {
			say("%s: its results differ in %s, and are compared as one sample; choose with -filter, such as %s:VALUE",
				side.Name, strings.Join(keys, ", "), keys[0])
		}
		for _, err := range side.Broken {
			say("%v", err)
		}
	}
	for _, row := range r.Rows {
		if r.least(row.N, row.M)*float64(len(r.Rows)) >= r.Options.Alpha {
			r.TooFew++
		}
	}
	if r.TooFew > 0 {
		say("too few trials in %d of %s to show anything after correction for their number; "+
			"record more trials, or compare fewer things with -unit and -filter", r.TooFew, english.Count(len(r.Rows), "comparison"))
	}
}

// leastP is the smallest two-sided p-value of a U test of n and m values: two of all the
// ways to choose n of n+m.
func leastP(n, m int) float64 {
	return min(1, 2/combin.GeneralizedBinomial(float64(n+m), float64(n)))
}

// Write writes the comparison as text: a table for each unit (for Counts, one table of the counts
// that differ), then warnings, and the verdict as the last line.
func (r Result) Write(w io.Writer) error {
	out := &strings.Builder{}
	if r.exact {
		r.writeCounts(out)
	} else {
		r.writeTests(out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r Result) writeTests(out *strings.Builder) {
	var units []string
	for _, row := range r.Rows {
		if !slices.Contains(units, row.Unit) {
			units = append(units, row.Unit)
			r.table(out, row.Unit)
		}
	}
	for _, side := range []struct {
		name  string
		names []string
	}{{r.Old, r.OnlyOld}, {r.New, r.OnlyNew}} {
		for _, name := range side.names {
			fmt.Fprintf(out, "only in %s: %s\n", side.name, name)
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(out, "warning: %s\n", warning)
	}
	fmt.Fprintf(out, "%d better, %d worse of %s (%s, Holm-corrected p < %v, change of %v%% or more)\n",
		r.Better, r.Worse, english.Count(len(r.Rows), "comparison"), r.test, r.Options.Alpha, 100*r.Options.Effect)
}

func (r Result) table(w io.Writer, unit string) {
	rows := [][]string{{unit, r.Old, r.New, "change", "p (corrected)", "trials", "verdict"}}
	for _, row := range r.Rows {
		if row.Unit == unit {
			rows = append(rows, []string{
				row.Benchmark, summary(row.Old, unit), summary(row.New, unit), percent(row.Change),
				fmt.Sprintf("%.3g", row.Adjusted), fmt.Sprintf("%d+%d", row.N, row.M), string(row.Verdict),
			})
		}
	}
	fmt.Fprintln(w, table.Align(rows, 1))
}

func summary(s benchmath.Summary, unit string) string {
	return benchunit.Scale(s.Center, benchunit.ClassOf(unit)) + " ±" + s.PctRangeString()
}

func percent(change float64) string {
	if math.IsInf(change, 0) {
		return "from 0"
	}
	return fmt.Sprintf("%+.1f%%", 100*change)
}

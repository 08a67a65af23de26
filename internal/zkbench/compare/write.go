package compare

import (
	"fmt"
	"io"
	"math"
	"strings"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/table"
)

// Write writes the comparison for people: a table for each unit, what was left
// out, and the verdict as the last line.
func (r Result) Write(w io.Writer) error {
	out := &strings.Builder{}
	for _, unit := range r.unitsInOrder() {
		r.table(out, unit)
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
	fmt.Fprintf(out, "%d better, %d worse of %d comparisons (%s, Holm-corrected p < %v, change of %v%% or more)\n",
		r.better, r.worsen, len(r.Rows), r.test, r.Options.Alpha, 100*r.Options.Effect)
	_, err := io.WriteString(w, out.String())
	return err
}

func (r Result) unitsInOrder() (units []string) {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if !seen[row.Unit] {
			seen[row.Unit] = true
			units = append(units, row.Unit)
		}
	}
	return units
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

// summary writes a median and the farther end of its interval.
func summary(s benchmath.Summary, unit string) string {
	return benchunit.Scale(s.Center, benchunit.ClassOf(unit)) + " ±" + s.PctRangeString()
}

func percent(change float64) string {
	if math.IsInf(change, 0) {
		return "from 0"
	}
	return fmt.Sprintf("%+.1f%%", 100*change)
}

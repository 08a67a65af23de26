// Package table writes the results of a run for the terminal.
package table

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/internal/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

// Narrow is a width that fits every terminal.
const Narrow = 80

// Write writes a short table: the medians of the valid records of each combination. The
// strategies of one combination follow each other, with their speed relative to the first:
// see row.speed. Without records it writes nothing. It omits a column without any value.
//
// If the table is wider than width, Write omits columns, the least important first, and
// names them. A width of 0 is unlimited.
func Write(w io.Writer, records []record.Record, width int) error {
	if len(records) == 0 {
		return nil
	}
	rows := rows(records)
	shown := make([]filled, len(columns))
	for i, c := range columns {
		shown[i] = filled{column: c, cells: []string{c.head}}
	}
	var baseline row
	for i, r := range rows {
		if i == 0 || !r.sameButStrategy(baseline) {
			baseline = r
		}
		for j := range shown {
			shown[j].cells = append(shown[j].cells, shown[j].cell(r, baseline))
		}
	}
	shown = slices.DeleteFunc(shown, func(f filled) bool {
		return !f.varies() && (f.cells[1] == none || f.head == "delay" && rows[0].Delay == 0)
	})
	shown, left := fit(shown, width)
	lines := make([][]string, len(rows)+1)
	for i := range lines {
		for _, c := range shown {
			lines[i] = append(lines[i], c.cells[i])
		}
	}
	text := Align(lines, 0)
	if len(left) > 0 {
		text += fmt.Sprintf("(no room for %s; -table wide shows all)\n", strings.Join(left, ", "))
	}
	_, err := io.WriteString(w, text)
	return err
}

type filled struct {
	column
	cells []string
}

func (f filled) width() int {
	n := 0
	for _, cell := range f.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n + len(gap)
}

func (f filled) varies() bool {
	return slices.ContainsFunc(f.cells[1:], func(cell string) bool { return cell != f.cells[1] })
}

// fit returns the columns that fit into width, and the heads of the others.
func fit(all []filled, width int) (shown []filled, left []string) {
	total := -len(gap)
	for _, c := range all {
		total += c.width()
	}
	shown = slices.Clone(all)
	for width > 0 && total > width {
		i := expendable(shown)
		if i < 0 {
			break
		}
		total -= shown[i].width()
		left = append(left, shown[i].head)
		shown = slices.Delete(shown, i, i+1)
	}
	return shown, left
}

func expendable(shown []filled) int {
	least := -1
	for i, c := range shown {
		if c.key && c.varies() {
			continue
		}
		if least < 0 || c.importance < shown[least].importance {
			least = i
		}
	}
	return least
}

const none = "-"

type row struct {
	record.Record
	report.Level // the valid trials
}

func rows(records []record.Record) (all []row) {
	for _, r := range records {
		i := slices.IndexFunc(all, func(row row) bool { return row.Name() == r.Name() })
		if i < 0 {
			i = len(all)
			all = append(all, row{Record: r})
		}
		if r.Valid() {
			all[i].Trials = append(all[i].Trials, r)
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(a.Recipe, b.Recipe), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Hold, b.Hold), cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.Delay, b.Delay),
			cmp.Compare(a.Record.Contenders, b.Record.Contenders),
			cmp.Compare(slices.Index(recipes.Strategies(), a.Strategy), slices.Index(recipes.Strategies(), b.Strategy)),
			cmp.Compare(a.Strategy, b.Strategy),
		)
	})
	return all
}

func (r row) sameButStrategy(other row) bool {
	a, b := r.Record, other.Record
	a.Strategy, b.Strategy = "", ""
	return a.Name() == b.Name()
}

// speed compares a row with the baseline: the median of the ratios of their times over all pairs of
// trials, and its 95 % interval. It is ~ if the U test finds no difference, as in benchstat, and
// "too few" if there are too few trials to find one. The interval belongs to that test: if the test
// finds a difference, the interval does not contain 1.
func (r row) speed(baseline row) string {
	mine, base := r.Values(unit.Time), baseline.Values(unit.Time)
	switch {
	case len(mine) == 0 || len(base) == 0 || slices.Min(mine) <= 0:
		return none
	case r.Name() == baseline.Name():
		return "1.00x"
	}
	a, b := benchmath.NewSample(mine, &benchmath.DefaultThresholds), benchmath.NewSample(base, &benchmath.DefaultThresholds)
	n, m := float64(len(mine)), float64(len(base))
	switch c := benchmath.AssumeNothing.Compare(a, b); {
	case 2/combin.GeneralizedBinomial(n+m, n) >= c.Alpha: // the smallest p
		return "too few"
	case c.P >= c.Alpha:
		return "~"
	}
	var ratios []float64
	for _, m := range mine {
		for _, b := range base {
			ratios = append(ratios, b/m)
		}
	}
	slices.Sort(ratios)
	all := len(ratios)
	outside := max(0, int(n*m/2-1.96*math.Sqrt(n*m*(n+m+1)/12)-0.5)) // of the ratios, at each end
	return fmt.Sprintf("%.2fx (%.2f-%.2f)", (ratios[(all-1)/2]+ratios[all/2])/2, ratios[outside], ratios[all-1-outside])
}

type column struct {
	head string
	cell func(r, baseline row) string
	// importance decides which column is omitted first: the least important. A key column
	// is never omitted if its values differ between rows.
	importance int
	key        bool
}

var columns = []column{
	{"recipe", func(r, _ row) string { return string(r.Recipe) }, 2, true},
	{"workload", func(r, _ row) string { return string(r.Workload) }, 3, true},
	{"via", func(r, _ row) string { return r.Transport }, 1, true},
	{"delay", func(r, _ row) string { return r.Delay.String() }, 0, true},
	{"contenders", func(r, _ row) string { return strconv.Itoa(r.Record.Contenders) }, 99, true},
	{"strategy", func(r, _ row) string { return string(r.Strategy) }, 98, true},
	{"runs", func(r, _ row) string { return strconv.Itoa(len(r.Trials)) }, 8, false},
	median("time/op", unit.Time, 12),
	{"speed", row.speed, 20, false},
	median("handoffs/s", unit.Handoffs, 30),
	median("longest without a grant", unit.NoGrant, 31),
	median("handoff p50", unit.HandoffP50, 11),
	median("handoff p99", unit.HandoffP99, 29),
	wait("wait p50", unit.WaitP50, 5),
	wait("wait p99", unit.WaitP99, 13),
	median("reads/op", unit.Reads, 9),
	median("writes/op", unit.Writes, 4),
	median("events/op", unit.Events, 10),
	median("bytes/op", unit.Bytes, 7),
	median("MB rss", unit.RSS, 6),
}

// wait is a column of medians for workloads without handoffs.
func wait(head, of string, importance int) column {
	return column{head: head, importance: importance, cell: func(r, _ row) string {
		if r.Workload != load.Open && r.Workload != load.Timeline && !r.Workload.Own() {
			return none
		}
		return r.Cell(of)
	}}
}

func median(head, of string, importance int) column {
	return column{head: head, importance: importance, cell: func(r, _ row) string { return r.Cell(of) }}
}

const gap = "  "

// Align returns rows, each with the same number of cells, as lines with columns. The first
// left columns are aligned to the left, as words are, and the others to the right, as
// numbers are.
func Align(rows [][]string, left int) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := make([]string, len(row))
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < left {
				line[i] = cell + padding
			} else {
				line[i] = padding + cell
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(line, gap), " ") + "\n")
	}
	return b.String()
}

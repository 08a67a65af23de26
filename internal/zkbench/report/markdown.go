package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// columns are the units of the tables, if any record of the set has them.
var columns = []column{
	{unit.Handoffs, "handoffs/s"},
	{unit.Acquired, "acquisitions/s"},
	{unit.Ops, "ops/s"},
	{unit.HandoffP50, "handoff p50"},
	{unit.HandoffP99, "handoff p99"},
	{unit.WaitP50, "wait p50"},
	{unit.WaitP99, "wait p99"},
	{unit.ServiceP50, "service p50"},
	{unit.ServiceP99, "service p99"},
	{unit.Reads, "reads/op"},
	{unit.Writes, "writes/op"},
	{unit.Syncs, "syncs/op"},
	{unit.Events, "watch events/op"},
	{unit.Bytes, "bytes/op"},
	{unit.Fallbacks, "fallbacks/op"},
	{unit.Asked, "asked/op"},
	{unit.Packets, "server packets/op"},
	{unit.Fsyncs, "fsyncs/op"},
	{unit.TurnsMin, "fewest turns"},
	{unit.TurnsMax, "most turns"},
	{unit.TurnsCV, "variation of turns"},
}

var memoryColumns = []column{
	{unit.RSS, "MB rss"},
	{unit.RSSEach, "MB rss/session"},
	{unit.Session, "MB heap/session"},
}

type column struct{ unit, name string }

// Table is the medians of a set.
type Table struct {
	Head []string
	Rows [][]string
}

// TableOf returns the table of a set: a row for each number of contenders and strategy,
// without empty columns.
func TableOf(s Set) Table { return tableOf(s, columns) }

// MemoryOf returns the table of the memory of sessions. It has the growth of the heap for each
// session. It also has the resident memory of the processes in which they live, in total and
// for each session. That includes an embedded server, and the memory that the process needs
// without sessions. So only long lines show the cost of a session.
func MemoryOf(s Set) Table { return tableOf(s, memoryColumns) }

func tableOf(s Set, columns []column) Table {
	t := Table{Head: slices.Clone(keys)}
	var used []string
	for _, c := range columns {
		if has(s, c.unit) {
			t.Head, used = append(t.Head, c.name), append(used, c.unit)
		}
	}
	for _, n := range contenders(s) {
		for _, lines := range s.Series {
			for _, level := range lines.Levels {
				if level.Contenders == n {
					t.Rows = append(t.Rows, row(lines.Name, level, used))
				}
			}
		}
	}
	return t
}

func row(name string, l Level, units []string) []string {
	row := []string{fmt.Sprint(l.Contenders), name, fmt.Sprint(len(l.Trials))}
	for _, figure := range units {
		cell := "-"
		if s, ok := l.Median(figure); ok {
			cell = unit.Quantity(figure, s.Value)
		}
		row = append(row, cell)
	}
	return row
}

func has(s Set, unit string) bool {
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			if _, ok := level.Median(unit); ok {
				return true
			}
		}
	}
	return false
}

func contenders(s Set) (all []int) {
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			all = append(all, level.Contenders)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// keys are the columns that every table has.
var keys = []string{"contenders", "strategy", "trials"}

func (t Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(t.Head, " | "), strings.Repeat("---:|", len(t.Head)))
	for _, row := range t.Rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// Markdown writes the tables of sets.
func Markdown(w io.Writer, sets []Set) error {
	var b strings.Builder
	for i, s := range sets {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "**%s**\n\n", s.Title)
		TableOf(s).markdown(&b)
		if m := MemoryOf(s); len(m.Head) > len(keys) {
			b.WriteString("\nMemory:\n\n")
			m.markdown(&b)
		}
		if len(s.Invalid) > 0 {
			fmt.Fprintf(&b, "\n%d trials are left out as invalid.\n", len(s.Invalid))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Percentiles writes the times of a level in HdrHistogram's percentile format,
// in milliseconds, for its plotters.
func Percentiles(w io.Writer, l Level) error {
	h := l.Histogram()
	if h == nil {
		return fmt.Errorf("report: no times of %d contenders", l.Contenders)
	}
	_, err := h.PercentilesPrint(w, 5, 1e6)
	return err
}

var summaryUnits = []struct{ unit, name string }{
	{unit.Handoffs, "handoffs/s"},
	{unit.HandoffP99, "p99"},
	{unit.Events, "events"},
}

// Summary writes a short table of each set in Markdown, with a row for each number of
// contenders. For each strategy it has handoffs per second, their 99th percentile and watch
// events. A missing value is a dash. picture returns the path of a figure, relative to the
// page with the tables; if it is nil or returns "", there is no figure.
func Summary(w io.Writer, sets []Set, picture func(set int, f Figure) string) error {
	var b strings.Builder
	for i, s := range sets {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "**%s**\n\n", s.Title)
		b.WriteString(summaryOf(s))
		if n := len(s.Invalid); n > 0 {
			fmt.Fprintf(&b, "\n%d trials, in which zkbench itself was the limit, are left out.\n", n)
		}
		for _, f := range Figures(s) {
			if picture == nil || f.Name != "throughput" {
				continue
			}
			if path := picture(i, f); path != "" {
				fmt.Fprintf(&b, "\n![%s](%s)\n", f.Alternative(), path)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func summaryOf(s Set) string {
	var b strings.Builder
	b.WriteString("| contenders |")
	for _, lines := range s.Series {
		for i, u := range summaryUnits {
			name := u.name
			if i == 0 {
				name = lines.Name + ": " + name
			}
			fmt.Fprintf(&b, " %s |", name)
		}
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat("---:|", 1+len(s.Series)*len(summaryUnits)))
	for _, n := range contenders(s) {
		if n < 2 {
			continue // a single contender makes no handoffs
		}
		fmt.Fprintf(&b, "| %d |", n)
		for _, lines := range s.Series {
			for _, u := range summaryUnits {
				fmt.Fprintf(&b, " %s |", lines.cell(n, u.unit))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (l Lines) cell(n int, of string) string {
	for _, level := range l.Levels {
		if level.Contenders == n {
			if s, ok := level.Median(of); ok {
				return unit.Quantity(of, s.Value)
			}
		}
	}
	return "-"
}

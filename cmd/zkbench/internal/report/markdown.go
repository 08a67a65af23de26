package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// columns are the units of the tables, if any record of the set has them.
var columns = []column{
	{unit.Handoffs, "handoffs/s"},
	{unit.Acquired, "acquisitions/s"},
	{unit.Ops, "ops/s"},
	{unit.NoGrant, "longest without a grant"},
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

// memoryColumns are the units of the table of memory. They have the growth of the heap for each
// session, and the resident memory of the processes in which sessions live, in total and for each
// session. That includes an embedded server, and the memory that the process needs without
// sessions. So only long lines show the cost of a session.
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

// tableOf returns a table of a set: a row for each number of contenders and strategy, without
// empty columns. It has no rows if all are empty.
func tableOf(s Set, columns []column) Table {
	t := Table{Head: slices.Clone(keys)}
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !has(s, c.unit) })
	if len(columns) == 0 {
		return t
	}
	for _, c := range columns {
		t.Head = append(t.Head, c.name)
	}
	for _, n := range contenders(s) {
		for _, lines := range s.Series {
			level := lines.at(n)
			if len(level.Trials) == 0 {
				continue
			}
			row := []string{fmt.Sprint(n), lines.Name, fmt.Sprint(len(level.Trials))}
			for _, c := range columns {
				row = append(row, level.Cell(c.unit))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func has(s Set, unit string) bool {
	return slices.ContainsFunc(s.Series, func(lines Lines) bool {
		return slices.ContainsFunc(lines.Levels, func(level Level) bool { return len(level.Values(unit)) > 0 })
	})
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

var keys = []string{"contenders", "strategy", "trials"}

func (t Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(t.Head, " | "), strings.Repeat("---:|", len(t.Head)))
	for _, row := range t.Rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// Markdown writes the tables of sets.
func Markdown(w io.Writer, sets []Set) error {
	return sections(w, sets, func(b *strings.Builder, _ int, s Set) {
		tableOf(s, columns).markdown(b)
		if f := Faults(timelines(s)); len(f.Rows) > 0 {
			b.WriteString("\nFaults:\n\n")
			f.markdown(b)
		}
		if m := tableOf(s, memoryColumns); len(m.Rows) > 0 {
			b.WriteString("\nMemory:\n\n")
			m.markdown(b)
		}
		if len(s.Invalid) > 0 {
			fmt.Fprintf(b, "\nLeft out as invalid: %s.\n", english.Count(len(s.Invalid), "trial"))
		}
	})
}

func sections(w io.Writer, sets []Set, write func(*strings.Builder, int, Set)) error {
	var b strings.Builder
	for i, s := range sets {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "**%s**\n\n", s.Title)
		write(&b, i, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Percentiles writes the times of a level in HdrHistogram's percentile format,
// in milliseconds, for its plotters.
func Percentiles(w io.Writer, l Level) error {
	h := l.Histogram()
	if h == nil {
		return fmt.Errorf("report: no times of %s", english.Count(l.Contenders, "contender"))
	}
	_, err := h.PercentilesPrint(w, 5, 1e6)
	return err
}

var summaryUnits = []column{
	{unit.Handoffs, "handoffs/s"},
	{unit.HandoffP99, "p99"},
	{unit.Events, "events"},
}

// Summary writes a short table of each set in Markdown, with a row for each number of
// contenders. For each strategy it has handoffs per second, their 99th percentile and watch
// events. A missing value is a dash. picture returns the path of a figure, relative to the
// page with the tables, or "" for none.
func Summary(w io.Writer, sets []Set, picture func(set int, f Figure) string) error {
	return sections(w, sets, func(b *strings.Builder, i int, s Set) {
		summaryOf(s).markdown(b)
		if n := len(s.Invalid); n > 0 {
			fmt.Fprintf(b, "\nLeft out: %s in which zkbench itself was the limit.\n", english.Count(n, "trial"))
		}
		for _, f := range Figures(s) {
			if f.Name != "throughput" {
				continue
			}
			if path := picture(i, f); path != "" {
				fmt.Fprintf(b, "\n![%s](%s)\n", f.Alternative(), path)
			}
		}
	})
}

func summaryOf(s Set) Table {
	t := Table{Head: []string{"contenders"}}
	for _, lines := range s.Series {
		for i, u := range summaryUnits {
			if i == 0 {
				u.name = lines.Name + ": " + u.name
			}
			t.Head = append(t.Head, u.name)
		}
	}
	for _, n := range contenders(s) {
		if n < 2 {
			continue // a single contender makes no handoffs
		}
		row := []string{fmt.Sprint(n)}
		for _, lines := range s.Series {
			for _, u := range summaryUnits {
				row = append(row, lines.at(n).Cell(u.unit))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

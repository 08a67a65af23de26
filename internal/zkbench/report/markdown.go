package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
)

// columns are the units of the tables, if any record of the set has them.
var columns = []column{
	{record.UnitHandoffs, "handoffs/s"},
	{record.UnitAcquired, "acquisitions/s"},
	{record.UnitOps, "ops/s"},
	{record.UnitHandoffP50, "handoff p50"},
	{record.UnitHandoffP99, "handoff p99"},
	{record.UnitWaitP50, "wait p50"},
	{record.UnitWaitP99, "wait p99"},
	{record.UnitServiceP50, "service p50"},
	{record.UnitServiceP99, "service p99"},
	{record.UnitReads, "reads/op"},
	{record.UnitWrites, "writes/op"},
	{record.UnitEvents, "watch events/op"},
	{record.UnitBytes, "bytes/op"},
	{record.UnitFallbacks, "fallbacks/op"},
	{record.UnitPackets, "server packets/op"},
	{record.UnitFsyncs, "fsyncs/op"},
	{record.UnitTurnsMin, "fewest turns"},
	{record.UnitTurnsMax, "most turns"},
	{record.UnitTurnsCV, "variation of turns"},
}

// memoryColumns are the units of the table of memory.
var memoryColumns = []column{
	{record.UnitRSS, "MB rss"},
	{record.UnitRSSEach, "MB rss/session"},
	{record.UnitSession, "MB heap/session"},
}

type column struct{ unit, name string }

// Table is the medians of a set.
type Table struct {
	Head []string
	Rows [][]string
}

// TableOf returns the table of a set: a row for each number of contenders and
// strategy, without columns that would be empty.
func TableOf(s Set) Table { return tableOf(s, columns) }

// MemoryOf returns the table of what sessions take in memory, by their number: the
// resident memory of the processes that they live in (an embedded server included),
// the same for each session, and by how much each grew the heap. Resident memory has
// what the process takes anyway, so that only long lines tell what a session costs.
func MemoryOf(s Set) Table { return tableOf(s, memoryColumns) }

func tableOf(s Set, columns []column) Table {
	var t Table
	t.Head = slices.Clone(keys)
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
	for _, unit := range units {
		cell := "-"
		if s, ok := l.Summary(unit); ok {
			cell = Quantity(unit, s.Center)
		}
		row = append(row, cell)
	}
	return row
}

func has(s Set, unit string) bool {
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			if _, ok := level.Summary(unit); ok {
				return true
			}
		}
	}
	return false
}

// contenders returns the numbers of contenders of a set, ascending.
func contenders(s Set) (all []int) {
	merged := Lines{}
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			merged.add(record.Record{Contenders: level.Contenders})
		}
	}
	for _, level := range merged.Levels {
		all = append(all, level.Contenders)
	}
	return all
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

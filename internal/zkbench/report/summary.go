package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// summaryUnits are what a summary shows of each strategy.
var summaryUnits = []struct{ unit, name string }{
	{unit.Handoffs, "handoffs/s"},
	{unit.HandoffP99, "p99"},
	{unit.Events, "events"},
}

// Summary writes a short table of each set in Markdown, with a row for each number of
// contenders. It has handoffs per second, their 99th percentile and watch events, of
// one strategy beside those of the next. What was not measured is a dash. picture
// returns the path of a figure for the page that the tables stand on; nil, or "" from
// it, shows none.
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
			continue // it hands nothing to anybody
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

// cell is the median of a unit at a number of contenders.
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

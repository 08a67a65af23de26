package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// answers are what a set may answer, one sentence each. The first three that it can are
// its answer.
var answers = []struct {
	unit, format string // of the contenders and of what each strategy has
	less         bool   // is better
}{
	{unit.Handoffs, "With %d contenders, handoffs per second were %s.", false},
	{unit.Acquired, "With %d contenders, acquisitions per second were %s.", false},
	{unit.Ops, "With %d contenders, operations per second were %s.", false},
	{unit.HandoffP99, "With %d contenders, 99 of 100 handoffs took at most %s.", true},
	{unit.WaitP99, "With %d contenders, 99 of 100 waits took at most %s.", true},
	{unit.ServiceP99, "With %d contenders, 99 of 100 service times were at most %s.", true},
	{unit.Events, "With %d contenders, an operation caused this many watch events: %s.", true},
	{unit.Bytes, "With %d contenders, an operation brought this many bytes: %s.", true},
}

// sentences is how many an answer has at most.
const sentences = 3

// Answer says in three sentences what a set shows, each in the longest line that all
// strategies have a figure of.
func Answer(s Set) string {
	var said []string
	for _, a := range answers {
		if text, n := ranking(s, a.unit, a.less); text != "" && len(said) < sentences {
			said = append(said, fmt.Sprintf(a.format, n, text))
		}
	}
	return strings.Join(said, " ")
}

// ranking is what each strategy has in the longest line that all have, the best first.
// It is "" if there is no such line.
func ranking(s Set, of string, less bool) (text string, contenders int) {
	values := map[int]map[string]float64{} // by contenders and strategy
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			if m, ok := level.Median(of); ok {
				if values[level.Contenders] == nil {
					values[level.Contenders] = map[string]float64{}
				}
				values[level.Contenders][lines.Name] = m.Value
			}
		}
	}
	for n, strategies := range values {
		if n > 1 && len(strategies) == len(s.Series) { // one hands nothing to anybody
			contenders = max(contenders, n)
		}
	}
	if contenders == 0 {
		return "", 0
	}
	names := make([]string, 0, len(s.Series))
	for _, lines := range s.Series {
		names = append(names, lines.Name)
	}
	at := values[contenders]
	slices.SortStableFunc(names, func(a, b string) int {
		if less {
			return cmp.Compare(at[a], at[b])
		}
		return cmp.Compare(at[b], at[a])
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", unit.Quantity(of, at[name]), name)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last], contenders
	}
	return names[0], contenders
}

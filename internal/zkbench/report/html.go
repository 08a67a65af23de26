package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTML writes a page about the sets. It needs no other file and no network. plan is the
// output of zkbench plan for the records; "" omits that section.
func HTML(w io.Writer, sets []Set, plan string) error {
	data := struct {
		Style template.CSS
		Sets  []pageSet
		Plan  string
	}{template.CSS(Style), nil, plan}
	for i, s := range sets {
		set, err := newPageSet(i, s)
		if err != nil {
			return err
		}
		data.Sets = append(data.Sets, set)
	}
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type pageSet struct {
	ID, Title   string
	Answer      string
	Table       Table
	Memory      Table // without rows if there is none
	Figures     []pageFigure
	Invalid     []pageInvalid
	Missing     []string
	Environment []pageFact
}

type pageFigure struct {
	Title string
	SVG   template.HTML
	Table Table
}

type pageInvalid struct{ Trial, Why string }

type pageFact struct{ Name, Value string }

func newPageSet(i int, s Set) (pageSet, error) {
	set := pageSet{ID: fmt.Sprintf("set-%d", i+1), Title: s.Title, Answer: Answer(s), Table: TableOf(s), Environment: facts(s.Environment)}
	if m := MemoryOf(s); len(m.Head) > len(keys) {
		set.Memory = m
	}
	for _, f := range Figures(s) {
		var b strings.Builder
		if err := f.svg(&b, set.ID+"-"+f.Name, false); err != nil {
			return pageSet{}, err
		}
		set.Figures = append(set.Figures, pageFigure{f.Title, template.HTML(b.String()), f.table()})
	}
	for _, r := range s.Invalid {
		set.Invalid = append(set.Invalid, pageInvalid{fmt.Sprintf("%d (%s)", r.Trial, r.Name()), strings.Join(r.Invalid, "; ")})
	}
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			for _, r := range level.Trials {
				for _, name := range r.Missing {
					if !slices.Contains(set.Missing, name) {
						set.Missing = append(set.Missing, name)
					}
				}
			}
		}
	}
	return set, nil
}

func (f Figure) table() Table {
	t := Table{Head: []string{"line", f.X, "median", "from", "to"}}
	for _, s := range f.Series {
		for _, p := range s.Points {
			from, to := "-", "-"
			if p.Interval {
				from, to = unit.Quantity(f.Unit, p.Lo), unit.Quantity(f.Unit, p.Hi)
			}
			t.Rows = append(t.Rows, []string{s.Name, f.tick(p.X), unit.Quantity(f.Unit, p.Value), from, to})
		}
	}
	return t
}

func facts(e record.Environment) []pageFact {
	all := []pageFact{
		{"system", e.OS + "/" + e.Arch}, {"processor", e.CPU},
		{"ZooKeeper", fmt.Sprintf("%s, %d server(s), %s", e.Server.Version, e.Server.Servers, e.Server.Mode)},
	}
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		all = append(all, pageFact{name, e.Details[name]})
	}
	return all
}

// answers are sentences about a set, most important first. Answer uses the first three for
// which the set has figures.
var answers = []struct {
	unit, format string // the format takes the contenders and a ranking
	less         bool   // lower values are better
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

const sentences = 3

// Answer summarizes a set in up to three sentences, each for the longest line for which all
// strategies have the figure.
func Answer(s Set) string {
	var said []string
	for _, a := range answers {
		if text, n := ranking(s, a.unit, a.less); text != "" && len(said) < sentences {
			said = append(said, fmt.Sprintf(a.format, n, text))
		}
	}
	return strings.Join(said, " ")
}

// ranking returns the values of all strategies in the longest line that all of them have, the
// best first, and its contenders. text is "" if there is no such line.
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
		if n > 1 && len(strategies) == len(s.Series) { // a single contender makes no handoffs
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

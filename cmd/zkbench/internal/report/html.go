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
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"join": strings.Join}).Parse(pageText))

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
	Set
	ID, Answer    string
	Table, Memory Table // without rows if there is none
	Faults        Table
	Figures       []pageFigure
	Missing       []string
	Facts         [][2]string // names and values
}

type pageFigure struct {
	Title string
	SVG   template.HTML
	Table Table
}

func newPageSet(i int, s Set) (pageSet, error) {
	set := pageSet{
		Set: s, ID: fmt.Sprintf("set-%d", i+1), Answer: answer(s),
		Table: tableOf(s, columns), Memory: tableOf(s, memoryColumns), Faults: Faults(timelines(s)), Facts: facts(s.Environment),
	}
	for _, f := range Figures(s) {
		var b strings.Builder
		if err := f.svg(&b, set.ID+"-"+f.Name, false); err != nil {
			return pageSet{}, err
		}
		set.Figures = append(set.Figures, pageFigure{f.Title, template.HTML(b.String()), f.table()})
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
	if f.Seconds > 0 {
		t.Head = []string{"line", f.X, "value"}
	}
	for _, s := range f.Series {
		for _, p := range s.Points {
			from, to := "-", "-"
			if p.Interval {
				from, to = unit.Quantity(f.Unit, p.Lo), unit.Quantity(f.Unit, p.Hi)
			}
			row := []string{s.Name, f.tick(p.X), unit.Quantity(f.Unit, p.Value), from, to}
			t.Rows = append(t.Rows, row[:len(t.Head)])
		}
	}
	return t
}

func facts(e record.Environment) [][2]string {
	all := [][2]string{
		{"system", e.OS + "/" + e.Arch}, {"processor", e.CPU},
		{"ZooKeeper", fmt.Sprintf("%s, %s, %s", e.Server.Version, english.Count(e.Server.Servers, "server"), e.Server.Mode)},
	}
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		all = append(all, [2]string{name, e.Details[name]})
	}
	return all
}

// answers are sentences about a set, most important first. answer uses the first three for
// which the set has figures.
var answers = []struct {
	unit, format string // the format takes a ranking
	less         bool   // lower values are better
}{
	{unit.Handoffs, "handoffs per second were %s.", false},
	{unit.Acquired, "acquisitions per second were %s.", false},
	{unit.Ops, "operations per second were %s.", false},
	{unit.NoGrant, "the longest time without a grant after a fault was %s.", true},
	{unit.HandoffP99, "99 of 100 handoffs took at most %s.", true},
	{unit.WaitP99, "99 of 100 waits took at most %s.", true},
	{unit.ServiceP99, "99 of 100 service times were at most %s.", true},
	{unit.Events, "an operation caused this many watch events: %s.", true},
	{unit.Bytes, "an operation brought this many bytes: %s.", true},
}

const sentences = 3

// answer summarizes a set in up to three sentences, each for the longest line for which all
// strategies have the figure.
func answer(s Set) string {
	var said []string
	for _, a := range answers {
		if text, n := ranking(s, a.unit, a.less); text != "" && len(said) < sentences {
			said = append(said, fmt.Sprintf("With %s, "+a.format, english.Count(n, "contender"), text))
		}
	}
	return strings.Join(said, " ")
}

// ranking returns the values of all strategies in the longest line that all of them have, the
// best first, and how many contenders that line has. text is "" if there is no such line.
func ranking(s Set, of string, less bool) (text string, n int) {
	type ranked struct {
		name  string
		value float64
	}
	for _, n := range slices.Backward(contenders(s)) {
		var all []ranked
		for _, lines := range s.Series {
			if m, ok := lines.at(n).Median(of); ok {
				all = append(all, ranked{lines.Name, m.Value})
			}
		}
		if n < 2 || len(all) < len(s.Series) { // a single contender makes no handoffs
			continue
		}
		slices.SortStableFunc(all, func(a, b ranked) int {
			if less {
				return cmp.Compare(a.value, b.value)
			}
			return cmp.Compare(b.value, a.value)
		})
		var names []string
		for _, r := range all {
			names = append(names, fmt.Sprintf("%s (%s)", unit.Quantity(of, r.value), r.name))
		}
		if last := len(names) - 1; last > 0 {
			names = []string{strings.Join(names[:last], ", "), names[last]}
		}
		return strings.Join(names, " and "), n
	}
	return "", 0
}

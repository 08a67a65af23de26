package report

import (
	"fmt"
	"html"
	"math"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// Mark is a moment of a figure over time. Nothing was granted between From and To; both are 0 if
// that is not known.
type Mark struct {
	X, From, To float64
	Text        string
}

func timelines(s Set) (all []record.Record) {
	for _, lines := range s.Series {
		for _, level := range lines.Levels {
			for _, r := range level.Trials {
				if r.Timeline != nil {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// Faults returns a table of what followed the faults of timelines. Other records have no rows.
func Faults(records []record.Record) Table {
	t := Table{Head: []string{"contenders", "strategy", "trial", "fault", "at", "longest time without a grant", "sessions lost", "server back after"}}
	for _, r := range records {
		if r.Timeline == nil {
			continue
		}
		add := func(cells ...string) {
			t.Rows = append(t.Rows, append([]string{fmt.Sprint(r.Contenders), string(r.Strategy), fmt.Sprint(r.Trial)}, cells...))
		}
		add("none yet", "-", short(r.Timeline.Before.Longest), "-", "-")
		for _, f := range r.Timeline.Faults {
			gap, back := short(f.Gap.Longest), "-"
			if !f.Recovered {
				gap = "over " + gap
			}
			if f.Back > 0 {
				back = short(f.Back - f.Began)
			}
			add(f.Fault.What(), fmt.Sprintf("%.1fs", f.Began.Seconds()), gap, fmt.Sprint(f.Lost), back)
		}
		for _, f := range r.Timeline.Missed {
			add(f.String(), "did not happen", "-", "-", "-")
		}
	}
	return t
}

func short(d time.Duration) string { return unit.Quantity(unit.NoGrant, float64(d)) }

// overTime returns the figures of the timelines of a set: three for each.
func overTime(s Set) (figures []Figure) {
	for i, r := range timelines(s) {
		marks := marks(r.Timeline)
		of := fmt.Sprintf(", %s, %s, trial %d", r.Strategy, english.Count(r.Contenders, "contender"), r.Trial)
		add := func(name, title, unit string, linear bool, lines ...Series) {
			f := Figure{
				Name: fmt.Sprintf("timeline-%d-%s", i+1, name), Title: title + of, X: "second", Y: title, Unit: unit,
				Seconds: len(r.Timeline.Seconds), Linear: linear, Marks: marks,
			}
			for _, line := range lines {
				f.add(line.Name, line.Points)
			}
			if len(f.Series) > 0 {
				figures = append(figures, f)
			}
		}
		add("grants", "Grants a second", unit.Acquired, true,
			seconds(r, "grants", true, func(s timeline.Second) float64 { return float64(s.Grants) }))
		for _, times := range []struct {
			name, title, unit string
			of                func(timeline.Second) timeline.Times
		}{
			{"waits", "Waits that ended in a second", unit.WaitP50, func(s timeline.Second) timeline.Times { return s.Wait }},
			{"handoffs", "Handoffs of a second", unit.HandoffP50, func(s timeline.Second) timeline.Times { return s.Handoff }},
		} {
			add(times.name, times.title, times.unit, false,
				seconds(r, "p50", false, func(s timeline.Second) float64 { return float64(times.of(s).P50) }),
				seconds(r, "p99", false, func(s timeline.Second) float64 { return float64(times.of(s).P99) }),
				seconds(r, "largest", false, func(s timeline.Second) float64 { return float64(times.of(s).Max) }))
		}
	}
	return figures
}

// seconds is a line with a point in the middle of each second. zero keeps seconds with the value 0.
func seconds(r record.Record, name string, zero bool, of func(timeline.Second) float64) Series {
	s := Series{Name: name}
	for i, second := range r.Timeline.Seconds {
		if v := of(second); v > 0 || zero {
			s.Points = append(s.Points, Point{float64(i) + 0.5, Median{Value: v, Lo: v, Hi: v}})
		}
	}
	return s
}

func marks(s *timeline.Series) (all []Mark) {
	for _, f := range s.Faults {
		all = append(all, Mark{f.Began.Seconds(), f.Gap.From.Seconds(), (f.Gap.From + f.Gap.Longest).Seconds(), f.Fault.What()})
	}
	for _, f := range s.Faults {
		if f.Back > 0 {
			all = append(all, Mark{X: f.Back.Seconds(), Text: "server back"})
		}
	}
	return all
}

const markRow = 14

// placeMarks places the names of marks above the drawing area, in several rows where they would
// overlap.
func (d *drawing) placeMarks() {
	var ends []float64 // of the last name in each row
	for _, m := range d.Marks {
		wide := float64(letter * len(m.Text))
		x, row := min(d.x(m.X), width-right-wide), 0
		for row < len(ends) && ends[row] > x {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = x + wide
		d.names = append(d.names, point{x, d.top + float64(markRow*row)})
	}
	d.top += float64(markRow * len(ends))
}

func (d *drawing) marks() {
	for i, m := range d.Marks {
		dashes := "1 4"
		if m.To > m.From {
			dashes = "5 3"
			fmt.Fprintf(d, `<rect x="%.1f" y="%.0f" width="%.1f" height="%.0f" style="fill:var(--s1);fill-opacity:.25"/>`,
				d.x(m.From), d.top, max(1, d.x(m.To)-d.x(m.From)), height-bottom-d.top)
		}
		at := d.names[i]
		fmt.Fprintf(d, `<path d="M%.1f %.0fV%d" style="stroke:var(--fg);stroke-dasharray:%s"/>`, d.x(m.X), d.top, height-bottom, dashes)
		fmt.Fprintf(d, `<text class="note" x="%.1f" y="%.0f">%s</text>`+"\n", at.x, at.y, html.EscapeString(m.Text))
	}
}

// steps are at most ten ticks of a linear scale from 0 to hi.
func steps(hi float64) (all []float64) {
	step := up(hi / 10)
	if step >= hi { // a scale of one unit
		step = hi
	}
	for v := 0.0; v <= hi*1.000001; v += step {
		all = append(all, v)
	}
	return all
}

func (f Figure) describe() (text string) {
	for _, s := range f.Series {
		least, most := s.Points[0], s.Points[0]
		for _, p := range s.Points {
			if p.Value < least.Value {
				least = p
			}
			if p.Value > most.Value {
				most = p
			}
		}
		text += fmt.Sprintf(" %s: from %s in second %s to %s in second %s.",
			s.Name, unit.Quantity(f.Unit, least.Value), f.tick(least.X), unit.Quantity(f.Unit, most.Value), f.tick(most.X))
	}
	for _, m := range f.Marks {
		text += fmt.Sprintf(" At %.1fs: %s", m.X, m.Text)
		if m.To > m.From {
			text += fmt.Sprintf(", then no grant for %s", short(time.Duration(math.Round((m.To-m.From)*1e9))))
		}
		text += "."
	}
	return text
}

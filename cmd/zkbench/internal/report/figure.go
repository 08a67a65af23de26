package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/english"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// Figure is a picture of lines on logarithmic scales, so all values are positive.
type Figure struct {
	Name   string // for files and links: lower case, with hyphens
	Title  string
	X, Y   string // what the axes show
	Unit   string // the unit of Y; see quantity
	Series []Series
	// Percentiles: X is 1/(1-percentile), and its ticks are percentiles.
	Percentiles bool

	// A figure over time has this number of seconds on X, on a linear scale, and marks.
	Seconds int
	Marks   []Mark
	Linear  bool // Y is linear too, and begins at 0
}

// Series is one line of a figure.
type Series struct {
	Name   string
	Points []Point
}

// Point is a value with its interval, if it has one.
type Point struct {
	X float64
	Median
}

// units are the units of a set's figures, if its records have them.
var units = []struct{ unit, name, title string }{
	{unit.Handoffs, "throughput", "Handoffs per second"},
	{unit.Acquired, "acquisitions", "Acquisitions per second"},
	{unit.Ops, "operations", "Operations per second"},
	{unit.HandoffP50, "handoff-p50", "Handoff time, median"},
	{unit.HandoffP99, "handoff-p99", "Handoff time, 99th percentile"},
	{unit.WaitP99, "wait-p99", "Wait, 99th percentile"},
	{unit.ServiceP99, "service-p99", "Service time, 99th percentile"},
	{unit.Events, "watch-events", "Watch events per operation"},
	{unit.Bytes, "bytes", "Response bytes per operation"},
	{unit.Packets, "server-packets", "Packets to the servers per operation"},
	{unit.Fsyncs, "server-fsyncs", "Fsyncs of the servers per operation"},
	{unit.ServerCPU, "server-cpu", "Processor time of the servers per operation"},
	{unit.RSSEach, "memory", "Resident memory for each session, MB"},
	{unit.TurnsCV, "fairness", "Unfairness: variation of turns between contenders"},
}

// Figures returns the figures of a set: each unit over the contenders, and the distribution
// of the times in its longest line. Figures of timelines show units over time.
func Figures(s Set) (figures []Figure) {
	if figures = overTime(s); len(figures) > 0 {
		return figures
	}
	for _, u := range units {
		f := Figure{Name: u.name, Title: u.title, X: "contenders", Y: u.title, Unit: u.unit}
		for _, lines := range s.Series {
			f.add(lines.Name, points(lines, u.unit))
		}
		// A figure with one point shows nothing if there are many levels. In a drain, for
		// example, only a single contender has waits.
		if len(f.Series) > 0 && (f.longest() > 1 || len(contenders(s)) == 1) {
			figures = append(figures, f)
		}
	}
	if f, ok := distribution(s); ok {
		figures = append(figures, f)
	}
	return figures
}

func (f *Figure) add(name string, points []Point) {
	if len(points) > 0 {
		f.Series = append(f.Series, Series{name, points})
	}
}

func (f *Figure) longest() (n int) {
	for _, s := range f.Series {
		n = max(n, len(s.Points))
	}
	return n
}

func points(l Lines, of string) (points []Point) {
	for _, level := range l.Levels {
		if s, ok := level.Median(of); ok && s.Value > 0 {
			s.Lo = max(s.Lo, s.Value/10) // a logarithmic scale has no zero
			points = append(points, Point{float64(level.Contenders), s})
		}
	}
	return points
}

func distribution(s Set) (Figure, bool) {
	f := Figure{
		Name: "distribution", Title: "Distribution of times in the longest line", Percentiles: true,
		X: "percentile", Y: "time at or below", Unit: unit.HandoffP50,
	}
	for _, lines := range s.Series {
		level := lines.Levels[len(lines.Levels)-1]
		h := level.Histogram()
		if h == nil {
			continue
		}
		var points []Point
		for _, p := range []float64{0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99} {
			// Less than one time lies above this percentile.
			if (100-p)/100*float64(h.TotalCount()) < 1 {
				break
			}
			if v := float64(h.ValueAtPercentile(p)); v > 0 {
				points = append(points, Point{1 / (1 - p/100), Median{Value: v, Lo: v, Hi: v}})
			}
		}
		f.add(lines.Name+", "+english.Count(level.Contenders, "contender"), points)
	}
	return f, len(f.Series) > 0
}

// Alternative describes the figure in words, for readers who cannot see it.
func (f Figure) Alternative() string {
	if f.Seconds > 0 {
		return fmt.Sprintf("%s over %s.%s", f.Title, english.Count(f.Seconds, "second"), f.describe())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s, both on logarithmic scales.", f.Title, f.X)
	for _, s := range f.Series {
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		fmt.Fprintf(&b, " %s: from %s at %s", s.Name, unit.Quantity(f.Unit, first.Value), f.tick(first.X))
		if len(s.Points) > 1 {
			fmt.Fprintf(&b, " to %s at %s", unit.Quantity(f.Unit, last.Value), f.tick(last.X))
		}
		b.WriteString(".")
	}
	if f.intervals() {
		b.WriteString(" Bars are " + intervalText + ".")
	}
	return b.String()
}

const intervalText = "95% confidence intervals of the medians"

func (f Figure) intervals() bool {
	return slices.ContainsFunc(f.Series, func(s Series) bool {
		return slices.ContainsFunc(s.Points, func(p Point) bool { return p.Interval })
	})
}

func (f Figure) tick(x float64) string {
	if f.Seconds > 0 {
		return fmt.Sprintf("%.0f", math.Floor(x))
	}
	if !f.Percentiles {
		return fmt.Sprintf("%g", x)
	}
	return fmt.Sprintf("%.4g%%", 100*(1-1/x))
}

// bounds are the smallest and largest values of the figure. The bounds of Y are steps of 1, 2,
// 5.
func (f Figure) bounds() (x0, x1, y0, y1 float64) {
	x0, y0 = math.Inf(1), math.Inf(1)
	for _, s := range f.Series {
		for _, p := range s.Points {
			x0, x1 = min(x0, p.X), max(x1, p.X)
			y0, y1 = min(y0, p.Lo), max(y1, p.Hi)
		}
	}
	if x0 == x1 {
		x1 = 2 * x0
	}
	if f.Seconds > 0 {
		x0, x1 = 0, float64(f.Seconds)
	}
	if f.Linear {
		return x0, x1, 0, up(max(y1, 1))
	}
	return x0, x1, down(y0), up(y1)
}

// down and up return the next step of 1, 2, 5 below or above v.
func down(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2, 1} {
		if m*decade <= v*0.999999 {
			return m * decade
		}
	}
	return decade / 2
}

func up(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{2, 5} {
		if m*decade >= v*1.000001 {
			return m * decade
		}
	}
	return 10 * decade
}

// ticks are the steps of 1, 2, 5 from lo to hi, or only the decades if there are many.
func ticks(lo, hi float64) (ticks []float64) {
	steps := []float64{1, 2, 5}
	if math.Log10(hi/lo) > 3 {
		steps = steps[:1]
	}
	for exponent := math.Floor(math.Log10(lo)); exponent <= math.Log10(hi)+1; exponent++ {
		for _, m := range steps {
			if v := m * math.Pow(10, exponent); v >= lo*0.999999 && v <= hi*1.000001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

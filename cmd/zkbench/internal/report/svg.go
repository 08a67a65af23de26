package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/unit"
)

// Sizes of a figure, in SVG's units; a page scales them.
const (
	width, height            = 720, 420
	left, right, top, bottom = 82, 30, 58, 54 // margins; each further row of the legend adds to the top
	inset                    = 12             // distance of the first and the last point from the edges
	legendRow                = 20
)

// Style is the style sheet of figures, light and dark. A page has it once.
const Style = `
.zk{--bg:#fff;--fg:#1b1f24;--grid:#d5dae0;--s0:#0b62c4;--s1:#b3400a;--s2:#1a7f37;--s3:#7b3fb5;font-family:system-ui,sans-serif;font-size:13px}
@media (prefers-color-scheme:dark){.zk{--bg:#14181d;--fg:#e6eaef;--grid:#39424c;--s0:#6cb2ff;--s1:#ff9d66;--s2:#63d07f;--s3:#c79bf2}}
.zk .bg{fill:var(--bg)}.zk text{fill:var(--fg)}.zk .grid{stroke:var(--grid);stroke-width:1}.zk .note{font-size:11px}.zk .title{font-size:15px;font-weight:600}
.zk .line{fill:none;stroke-width:2.2}.zk .s0 .line{stroke-width:5;stroke-opacity:.6}.zk .s1 .line{stroke-width:3.4}.zk .bar{stroke-width:1.4}
.zk .s0{stroke:var(--s0);--c:var(--s0)}.zk .s1{stroke:var(--s1);--c:var(--s1)}.zk .s2{stroke:var(--s2);--c:var(--s2)}.zk .s3{stroke:var(--s3);--c:var(--s3)}
.zk .s1 .line{stroke-dasharray:8 4}.zk .s2 .line{stroke-dasharray:2 3}.zk .s3 .line{stroke-dasharray:10 3 2 3}
.zk .mark{fill:var(--c);stroke:var(--bg);stroke-width:1}
`

// SVG writes a figure as a separate file. The same figure gives the same bytes.
func SVG(w io.Writer, f Figure) error { return f.svg(w, f.Name, true) }

// svg writes a figure. id makes its labels unique on a page. If alone is set, the figure
// contains its style.
func (f Figure) svg(w io.Writer, id string, alone bool) error {
	d := &drawing{Figure: f}
	d.x0, d.x1, d.y0, d.y1 = f.bounds()
	d.legend()
	d.placeMarks()
	fmt.Fprintf(d, `<svg class="zk" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d">`+"\n", width, height, id, id)
	fmt.Fprintf(d, "<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n", id, html.EscapeString(f.Title), id, html.EscapeString(f.Alternative()))
	if alone {
		fmt.Fprintf(d, "<style>%s</style>\n", Style)
	}
	fmt.Fprintf(d, `<rect class="bg" width="%d" height="%d"/><text class="title" x="%d" y="22">%s</text>`+"\n", width, height, left, html.EscapeString(f.Title))
	d.axes()
	d.marks()
	for i, s := range f.Series {
		d.series(i, s)
	}
	d.WriteString("</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

type drawing struct {
	Figure
	strings.Builder
	x0, x1, y0, y1 float64
	words          []point // positions in the legend, one for each series
	names          []point // of the marks
	top            float64 // of the drawing area
}

type point struct{ x, y float64 }

const letter = 8

func (d *drawing) legend() {
	at := point{left, 40}
	for _, s := range d.Series {
		wide := float64(32 + letter*(len(s.Name)+2))
		if at.x > left && at.x+wide > width {
			at = point{left, at.y + legendRow}
		}
		d.words = append(d.words, at)
		at.x += wide
	}
	d.top = at.y - 40 + top
}

func (d *drawing) x(v float64) float64 {
	if d.Seconds > 0 {
		return left + inset + (width-left-right-2*inset)*v/d.x1
	}
	return left + inset + (width-left-right-2*inset)*math.Log(v/d.x0)/math.Log(d.x1/d.x0)
}

func (d *drawing) y(v float64) float64 {
	if d.Linear {
		return height - bottom - (height-d.top-bottom)*v/d.y1
	}
	return height - bottom - (height-d.top-bottom)*math.Log(v/d.y0)/math.Log(d.y1/d.y0)
}

func (d *drawing) axes() {
	for _, v := range d.yTicks() {
		fmt.Fprintf(d, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, d.y(v), width-right, left-8, d.y(v)+4, html.EscapeString(tickOf(d.Unit, v)))
	}
	for _, v := range d.xTicks() {
		fmt.Fprintf(d, `<path class="grid" d="M%.1f %.0fV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			d.x(v), d.top, height-bottom, d.x(v), height-bottom+18, d.tick(v))
	}
	x, y := d.X+" (logarithmic)", "logarithmic scale" // the title names the unit
	if d.Y != d.Title {
		y = d.Y + " (logarithmic)"
	}
	if d.Seconds > 0 {
		x = d.X
	}
	if d.Linear {
		y = d.Y
	}
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-12, html.EscapeString(x))
	fmt.Fprintf(d, `<text x="14" y="%d" text-anchor="middle" transform="rotate(-90 14 %[1]d)">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(y))
	if d.intervals() {
		fmt.Fprintf(d, `<text class="note" x="%d" y="%d" text-anchor="end">bars: 95%% intervals</text>`+"\n", width-right, height-12)
	}
}

// tickOf formats a value of the Y axis. All have the same form: 1k, 10k.
func tickOf(of string, v float64) string {
	text := unit.Quantity(of, v)
	if v < 1000 || strings.HasSuffix(of, "ns/op") || strings.HasSuffix(of, "-ns") {
		return text
	}
	i := min(int(math.Log10(v)+1e-9)/3, 3)
	return strconv.FormatFloat(v/math.Pow(1000, float64(i)), 'g', 4, 64) + string(" kMG"[i])
}

func (d *drawing) yTicks() []float64 {
	if d.Linear {
		return steps(d.y1)
	}
	return ticks(d.y0, d.y1)
}

func (d *drawing) xTicks() (all []float64) {
	if d.Seconds > 0 {
		return steps(d.x1)
	}
	if !d.Percentiles {
		return ticks(d.x0, d.x1)
	}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99} {
		if v := 1 / (1 - p/100); v >= d.x0 && v <= d.x1*1.000001 {
			all = append(all, v)
		}
	}
	return all
}

func (d *drawing) series(i int, s Series) {
	fmt.Fprintf(d, `<g class="s%d"><path class="line" d="`, i%4)
	// Series are shifted, so that none hides another with the same values.
	aside := 7 * (float64(i) - float64(len(d.Series)-1)/2)
	if d.Seconds > 0 {
		aside = 0
	}
	for j, p := range s.Points {
		step := "ML"[min(j, 1)]
		if j > 0 && d.Seconds > 0 && p.X > s.Points[j-1].X+1 { // there is no value between them
			step = 'M'
		}
		fmt.Fprintf(d, "%c%.1f %.1f", step, d.x(p.X)+aside, d.y(p.Value))
	}
	d.WriteString(`"/>`)
	for _, p := range s.Points {
		if p.Interval && p.Hi > p.Lo {
			fmt.Fprintf(d, `<path class="bar" d="M%.1f %.1fV%.1f"/>`, d.x(p.X)+aside, d.y(p.Lo), d.y(p.Hi))
		}
		d.mark(i, d.x(p.X)+aside, d.y(p.Value))
	}
	at := d.words[i]
	fmt.Fprintf(d, `<path class="line" d="M%.0f %.0fh26"/>`, at.x, at.y)
	d.mark(i, at.x+13, at.y)
	fmt.Fprintf(d, `<text stroke="none" x="%.0f" y="%.0f">%s</text></g>`+"\n", at.x+32, at.y+4, html.EscapeString(s.Name))
}

// mark draws a point. Each series has a shape, because not all readers see the colours.
func (d *drawing) mark(i int, x, y float64) {
	switch i % 4 {
	case 0:
		fmt.Fprintf(d, `<circle class="mark" cx="%.1f" cy="%.1f" r="4.5"/>`, x, y)
	case 1:
		fmt.Fprintf(d, `<path class="mark" d="M%.1f %.1fh8v8h-8z"/>`, x-4, y-4)
	case 2:
		fmt.Fprintf(d, `<path class="mark" d="M%.1f %.1fl5 9h-10z"/>`, x, y-5)
	default:
		fmt.Fprintf(d, `<path class="mark" d="M%.1f %.1fl5 5l-5 5l-5 -5z"/>`, x, y-5)
	}
}

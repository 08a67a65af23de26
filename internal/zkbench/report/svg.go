package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// Sizes of a figure, in SVG's units; a page scales them.
const (
	width, height            = 720, 420
	left, right, top, bottom = 82, 18, 58, 54
)

// Style is how figures look, light and dark. A page has it once for all.
const Style = `
.zk{--bg:#fff;--fg:#1b1f24;--grid:#d5dae0;--s0:#0b62c4;--s1:#b3400a;--s2:#1a7f37;--s3:#7b3fb5;font-family:system-ui,sans-serif;font-size:13px}
@media (prefers-color-scheme:dark){.zk{--bg:#14181d;--fg:#e6eaef;--grid:#39424c;--s0:#6cb2ff;--s1:#ff9d66;--s2:#63d07f;--s3:#c79bf2}}
.zk .bg{fill:var(--bg)}.zk text{fill:var(--fg)}.zk .grid{stroke:var(--grid);stroke-width:1}.zk .note{font-size:11px}.zk .title{font-size:15px;font-weight:600}
.zk .line{fill:none;stroke-width:2.2}.zk .bar{stroke-width:1.4}
.zk .s0{stroke:var(--s0);--c:var(--s0)}.zk .s1{stroke:var(--s1);--c:var(--s1)}.zk .s2{stroke:var(--s2);--c:var(--s2)}.zk .s3{stroke:var(--s3);--c:var(--s3)}
.zk .s1 .line{stroke-dasharray:8 4}.zk .s2 .line{stroke-dasharray:2 3}.zk .s3 .line{stroke-dasharray:10 3 2 3}
.zk .mark{fill:var(--c);stroke:var(--bg);stroke-width:1}
`

// SVG writes a figure as a file of its own. The same figure gives the same bytes.
func SVG(w io.Writer, f Figure) error { return f.svg(w, f.Name, true) }

// svg writes a figure. id makes its labels unique on a page; alone, it brings its
// style along.
func (f Figure) svg(w io.Writer, id string, alone bool) error {
	d := &drawing{Figure: f}
	d.x0, d.x1, d.y0, d.y1 = f.bounds()
	fmt.Fprintf(d, `<svg class="zk" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d">`+"\n", width, height, id, id)
	fmt.Fprintf(d, "<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n", id, html.EscapeString(f.Title), id, html.EscapeString(f.Alternative()))
	if alone {
		fmt.Fprintf(d, "<style>%s</style>\n", Style)
	}
	fmt.Fprintf(d, `<rect class="bg" width="%d" height="%d"/><text class="title" x="%d" y="22">%s</text>`+"\n", width, height, left, html.EscapeString(f.Title))
	d.axes()
	for i, s := range f.Series {
		d.series(i, s)
	}
	d.WriteString("</svg>\n")
	_, err := io.WriteString(w, d.String())
	return err
}

// drawing is a figure being drawn.
type drawing struct {
	Figure
	strings.Builder
	x0, x1, y0, y1 float64
}

func (d *drawing) x(v float64) float64 {
	return left + (width-left-right)*math.Log(v/d.x0)/math.Log(d.x1/d.x0)
}

func (d *drawing) y(v float64) float64 {
	return height - bottom - (height-top-bottom)*math.Log(v/d.y0)/math.Log(d.y1/d.y0)
}

func (d *drawing) axes() {
	for _, v := range ticks(d.y0, d.y1) {
		fmt.Fprintf(d, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, d.y(v), width-right, left-8, d.y(v)+4, html.EscapeString(unit.Quantity(d.Unit, v)))
	}
	for _, v := range d.xTicks() {
		fmt.Fprintf(d, `<path class="grid" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			d.x(v), top, height-bottom, d.x(v), height-bottom+18, d.tick(v))
	}
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle">%s (logarithmic)</text>`+"\n", (left+width-right)/2, height-12, html.EscapeString(d.X))
	y := "logarithmic scale" // of what the title says
	if d.Y != d.Title {
		y = d.Y + " (logarithmic)"
	}
	fmt.Fprintf(d, `<text x="14" y="%d" text-anchor="middle" transform="rotate(-90 14 %[1]d)">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(y))
	if d.intervals() {
		fmt.Fprintf(d, `<text class="note" x="%d" y="22" text-anchor="end">bars: %s</text>`+"\n", width-right, intervalText)
	}
}

func (d *drawing) xTicks() (all []float64) {
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

// series draws a line with its marks, error bars and its word in the legend.
func (d *drawing) series(i int, s Series) {
	fmt.Fprintf(d, `<g class="s%d"><path class="line" d="`, i%4)
	for j, p := range s.Points {
		fmt.Fprintf(d, "%c%.1f %.1f", "ML"[min(j, 1)], d.x(p.X), d.y(p.Value))
	}
	d.WriteString(`"/>`)
	for _, p := range s.Points {
		if p.Interval && p.Hi > p.Lo {
			fmt.Fprintf(d, `<path class="bar" d="M%.1f %.1fV%.1f"/>`, d.x(p.X), d.y(p.Lo), d.y(p.Hi))
		}
		d.mark(i, d.x(p.X), d.y(p.Value))
	}
	at := left + i*(width-left-right)/max(1, len(d.Series))
	fmt.Fprintf(d, `<path class="line" d="M%d 40h26"/>`, at)
	d.mark(i, float64(at+13), 40)
	fmt.Fprintf(d, `<text stroke="none" x="%d" y="44">%s</text></g>`+"\n", at+32, html.EscapeString(s.Name))
}

// mark draws a point in the shape of its line: colours alone would not do.
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

package report

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// colours, dashes and shapes of lines, as in Style's light figures.
var (
	colours = []color.Color{
		color.RGBA{0x0b, 0x62, 0xc4, 0xff}, color.RGBA{0xb3, 0x40, 0x0a, 0xff},
		color.RGBA{0x1a, 0x7f, 0x37, 0xff}, color.RGBA{0x7b, 0x3f, 0xb5, 0xff},
	}
	dashes = [][]vg.Length{nil, {8, 4}, {2, 3}, {10, 3, 2, 3}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}}
)

// PNG writes a figure as a picture of 1440 by 840 pixels, for places that take no
// SVG. It is light.
func PNG(w io.Writer, f Figure) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	d := &drawing{Figure: f}
	d.x0, d.x1, d.y0, d.y1 = f.bounds()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = d.x0, d.x1, d.y0, d.y1
	p.X.Tick.Marker = marks(d.xTicks(), f.tick)
	p.Y.Tick.Marker = marks(ticks(d.y0, d.y1), func(v float64) string { return Quantity(f.Unit, v) })
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, s := range f.Series {
		if err := addTo(p, i, s); err != nil {
			return fmt.Errorf("report: %s: %w", f.Name, err)
		}
	}
	// 144 dots an inch.
	c := vgimg.NewWith(vgimg.UseWH(10*vg.Inch, 840.0/144*vg.Inch), vgimg.UseDPI(144))
	p.Draw(draw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

func addTo(p *plot.Plot, i int, s Series) error {
	line, points, err := plotter.NewLinePoints(xys(s))
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(errorBars{xys(s), s})
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = colours[i%4], vg.Points(1.6), dashes[i%4]
	points.Color, points.Shape, points.Radius = colours[i%4], shapes[i%4], vg.Points(3)
	bars.Color = colours[i%4]
	p.Add(line, points, bars)
	p.Legend.Add(s.Name, line, points)
	return nil
}

func xys(s Series) plotter.XYs {
	all := make(plotter.XYs, len(s.Points))
	for i, p := range s.Points {
		all[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return all
}

// errorBars are the points with their distances to the ends of their intervals.
type errorBars struct {
	plotter.XYs
	Series
}

func (e errorBars) YError(i int) (low, high float64) {
	p := e.Points[i]
	return p.Y - p.Lo, p.Hi - p.Y
}

func marks(at []float64, label func(float64) string) plot.ConstantTicks {
	all := make(plot.ConstantTicks, len(at))
	for i, v := range at {
		all[i] = plot.Tick{Value: v, Label: label(v)}
	}
	return all
}

package report_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/internal/zkbench/report"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// crowded is a figure of lines that coincide, with long names, a long title and values of
// all sizes.
func crowded() report.Figure {
	f := report.Figure{Name: "f", Title: "Processor time of the servers per operation, and more", X: "contenders", Y: "y", Unit: unit.Bytes}
	for _, name := range []string{"handoff, 10000 contenders", "herd, 100 contenders", "predecessor, 10000 contenders"} {
		s := report.Series{Name: name}
		for _, n := range []float64{1, 100, 10000} {
			s.Points = append(s.Points, report.Point{X: n, Median: report.Median{Value: 10 * n, Lo: 9 * n, Hi: 11 * n, Interval: true}})
		}
		f.Series = append(f.Series, s)
	}
	return f
}

var textOf = regexp.MustCompile(`<text([^>]*) x="([0-9.]+)" y="([0-9.]+)"([^>]*)>([^<]*)</text>`)

// No text of a figure is cut by its edge or lies over another: a letter of a wide font is
// eight wide.
func TestTextsOfAFigureHaveRoom(t *testing.T) {
	var svg strings.Builder
	if err := report.SVG(&svg, crowded()); err != nil {
		t.Fatal(err)
	}
	type text struct {
		words       string
		from, to, y float64
	}
	var all []text
	for _, m := range textOf.FindAllStringSubmatch(svg.String(), -1) {
		if strings.Contains(m[4], "rotate") {
			continue
		}
		x, _ := strconv.ParseFloat(m[2], 64)
		y, _ := strconv.ParseFloat(m[3], 64)
		wide := 8 * float64(len(m[5]))
		switch {
		case strings.Contains(m[4], "middle"):
			x -= wide / 2
		case strings.Contains(m[4], "end"):
			x -= wide
		}
		all = append(all, text{m[5], x, x + wide, y})
	}
	if len(all) < 10 {
		t.Fatalf("%d texts in\n%s", len(all), svg.String())
	}
	for i, a := range all {
		if a.from < 0 || a.to > 720 {
			t.Errorf("%q is cut: it is from %v to %v", a.words, a.from, a.to)
		}
		for _, b := range all[:i] {
			if a.from < b.to && b.from < a.to && a.y-b.y < 12 && b.y-a.y < 12 {
				t.Errorf("%q lies over %q", a.words, b.words)
			}
		}
	}
}

func TestTicksOfAFigureHaveOneForm(t *testing.T) {
	var svg strings.Builder
	if err := report.SVG(&svg, crowded()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">10<", ">100<", ">1k<", ">10k<", ">100k<"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("no tick %s in\n%s", want, svg.String())
		}
	}
}

// The marks of lines that coincide lie beside each other.
func TestLinesThatCoincideAreAllSeen(t *testing.T) {
	var svg strings.Builder
	if err := report.SVG(&svg, crowded()); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`class="line" d="M([0-9.]+) [0-9.]+L`).FindAllStringSubmatch(svg.String(), -1)
	if len(lines) != 3 || lines[0][1] == lines[1][1] || lines[1][1] == lines[2][1] {
		t.Errorf("the lines begin at %q", lines)
	}
}

// A table that is cut has a shade at its edge.
func TestTablesThatAreCutSaySo(t *testing.T) {
	if text := string(page(t)); !strings.Contains(text, "linear-gradient(to left,var(--cut)") {
		t.Error("no shade")
	}
}

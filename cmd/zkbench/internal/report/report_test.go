package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { leaktest.Main(m) }

// recorded returns the small recorded sweep.
func recorded(t *testing.T) []record.Run {
	t.Helper()
	f := must.Get(os.Open(filepath.Join("..", "..", "..", "..", "testdata", "results", "small.jsonl")))(t)
	defer f.Close()
	runs := must.Get(record.Read(f))(t)
	return runs
}

func render(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, write(&out))
	return out.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(file, got, 0o666)))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v; %s differs (rewrite with -update)", err, file)
	}
}

func page(t *testing.T) []byte {
	return render(t, func(w io.Writer) error {
		return report.HTML(w, report.Group(recorded(t)), "the plan goes here & is text\n")
	})
}

func TestRenderingsAreAsTheyWere(t *testing.T) {
	sets := report.Group(recorded(t))
	if len(sets) != 1 {
		t.Fatalf("%d sets; want 1", len(sets))
	}
	golden(t, "page.html", page(t))
	golden(t, "table.md", render(t, func(w io.Writer) error { return report.Markdown(w, sets) }))
	level := sets[0].Series[1].Levels[3]
	golden(t, "percentiles.hgrm", render(t, func(w io.Writer) error { return report.Percentiles(w, level) }))
	for _, f := range report.Figures(sets[0]) {
		if f.Name == "throughput" || f.Name == "distribution" {
			golden(t, f.Name+".svg", render(t, func(w io.Writer) error { return report.SVG(w, f) }))
		}
	}
}

func TestFiguresAreWellFormedAndHaveAlternatives(t *testing.T) {
	for _, f := range report.Figures(report.Group(recorded(t))[0]) {
		svg := render(t, func(w io.Writer) error { return report.SVG(w, f) })
		d := xml.NewDecoder(bytes.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		for _, want := range []string{`role="img"`, "<title", "<desc", "herd: from", "predecessor: from"} {
			if f.Name != "distribution" && !bytes.Contains(svg, []byte(want)) {
				t.Errorf("%s has no %s", f.Name, want)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "href"} {
			if bytes.Contains(svg, []byte(bad)) {
				t.Errorf("%s contains %s", f.Name, bad)
			}
		}
	}
}

// With fewer than six trials, the smallest and the largest are not a 95 % interval.
func TestFewTrialsHaveNoInterval(t *testing.T) {
	for _, trials := range []int{3, 5, 6} {
		runs := recorded(t)
		seen := map[string]int{}
		runs[0].Records = slices.DeleteFunc(runs[0].Records, func(r record.Record) bool {
			seen[r.Name()]++
			return seen[r.Name()] > trials
		})
		for _, f := range report.Figures(report.Group(runs)[0]) {
			if f.Percentiles {
				continue
			}
			svg := string(render(t, func(w io.Writer) error { return report.SVG(w, f) }))
			want := trials >= 6
			if got := strings.Contains(svg, `class="bar"`); f.Name == "throughput" && got != want {
				t.Errorf("%d trials: bars: %v; want %v", trials, got, want)
			}
			if got := strings.Contains(svg, "95%"); got != want {
				t.Errorf("%d trials: %s mentions intervals: %v; want %v", trials, f.Name, got, want)
			}
			for _, s := range f.Series {
				for _, p := range s.Points {
					if p.Interval != want || !want && (p.Lo != p.Value || p.Hi != p.Value) {
						t.Fatalf("%d trials: %s has %+v; an interval: %v", trials, f.Name, p, want)
					}
				}
			}
		}
	}
}

// The page has the answer first, then figures, then tables.
func TestPageBeginsWithTheAnswer(t *testing.T) {
	text := string(page(t))
	last := 0
	for _, want := range []string{
		"<p>With 100 contenders, handoffs per second were 9576 (predecessor) and 468.6 (herd). " +
			"With 100 contenders, 99 of 100 handoffs took at most 364µs (predecessor) and 7.36ms (herd). " +
			"With 100 contenders, an operation caused this many watch events: 1 (predecessor) and 41.14 (herd).</p>",
		`<svg class="zk"`, "<h3>All medians</h3>",
	} {
		at := strings.Index(text, want)
		if at < last {
			t.Fatalf("%.40q is at %d, after %d", want, at, last)
		}
		last = at
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	text := string(page(t))
	for _, bad := range []string{"<script", "http://", "https://", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme:dark", `name="viewport"`, `lang="en"`, "the plan goes here &amp; is text"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
}

// A median over trials of two machines, or of two networks, would describe neither.
func TestMachinesAndDelaysAreReportedApart(t *testing.T) {
	for what, change := range map[string]func(*record.Run){
		"another processor": func(r *record.Run) { r.Environment.CPU = "Other" },
		"more processors": func(r *record.Run) {
			for i := range r.Records {
				r.Records[i].Procs = 64
			}
		},
		"a delay": func(r *record.Run) {
			for i := range r.Records {
				r.Records[i].Delay = 2 * time.Millisecond
			}
		},
	} {
		runs := append(recorded(t), recorded(t)...)
		if sets := report.Group(runs); len(sets) != 1 {
			t.Fatalf("%d sets of one machine; want 1", len(sets))
		}
		change(&runs[1])
		sets := report.Group(runs)
		if len(sets) != 2 || sets[0].Title == sets[1].Title || len(sets[0].Series[0].Levels[0].Trials) != len(sets[1].Series[0].Levels[0].Trials) {
			t.Errorf("%s: %d sets; want one of each machine", what, len(sets))
		}
	}
}

func TestInvalidTrialsAreLeftOutAndListed(t *testing.T) {
	runs := recorded(t)
	before := len(report.Group(runs)[0].Series[0].Levels[0].Trials)
	for i, r := range runs[0].Records {
		if string(r.Strategy) == "herd" && r.Contenders == 1 {
			runs[0].Records[i].Invalid = []string{"the load generator was <busy>"}
			break
		}
	}
	sets := report.Group(runs)
	if after := len(sets[0].Series[0].Levels[0].Trials); after != before-1 || len(sets[0].Invalid) != 1 {
		t.Errorf("%d of %d trials, %d invalid; want one less, and that one", after, before, len(sets[0].Invalid))
	}
	text := string(render(t, func(w io.Writer) error { return report.HTML(w, sets, "") }))
	if !strings.Contains(text, "the load generator was &lt;busy&gt;") {
		t.Error("the page does not say why a trial is left out")
	}
}

// crowded is a figure with lines that coincide, long names, a long title and values of all sizes.
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

// No text of a figure crosses its edge or another text. A letter of a wide font has a width of
// eight.
func TestTextsOfAFigureFit(t *testing.T) {
	var svg strings.Builder
	must.Do(t, report.SVG(&svg, crowded()))
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

// The marks of lines that coincide are next to each other.
func TestLinesThatCoincideAreAllSeen(t *testing.T) {
	var svg strings.Builder
	must.Do(t, report.SVG(&svg, crowded()))
	lines := regexp.MustCompile(`class="line" d="M([0-9.]+) [0-9.]+L`).FindAllStringSubmatch(svg.String(), -1)
	if len(lines) != 3 || lines[0][1] == lines[1][1] || lines[1][1] == lines[2][1] {
		t.Errorf("the lines begin at %q", lines)
	}
}

package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/report"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
)

var results = filepath.Join("..", "..", "..", "..", "testdata", "results")

// recordedTimeline returns one of the recorded timelines, with the leader and a follower killed and
// the holder cut off.
func recordedTimeline(t *testing.T) []record.Run {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(results, "timeline", "failover.jsonl")))(t)
	defer f.Close()
	runs := must.Get(record.Read(f))(t)
	runs[0].Records = runs[0].Records[1:2]
	return runs
}

func TestTimelinesAreDrawnAsTheyWere(t *testing.T) {
	sets := report.Group(recordedTimeline(t))
	golden(t, "timeline.html", render(t, func(w io.Writer) error { return report.HTML(w, sets, "") }))
	golden(t, "timeline.md", render(t, func(w io.Writer) error { return report.Markdown(w, sets) }))
	figures := report.Figures(sets[0])
	if len(figures) != 3 {
		t.Fatalf("%d figures; want grants, waits and handoffs", len(figures))
	}
	for i, name := range []string{"grants", "waits", "handoffs"} {
		f := figures[i]
		svg := render(t, func(w io.Writer) error { return report.SVG(w, f) })
		if name != "handoffs" {
			golden(t, filepath.Join("..", results, "timeline", name+".svg"), svg)
			shown(t, "../testdata/results/timeline/"+name+".svg", f.Alternative())
		}
		if f.Name != "timeline-1-"+name {
			t.Errorf("figure %d is %s; want %s", i, f.Name, name)
		}
		wellFormed(t, f.Name, svg)
		for _, fault := range []string{"leader killed", "follower killed", "holder cut off"} {
			if !strings.Contains(f.Alternative(), fault+", then no grant for ") || !bytes.Contains(svg, []byte(fault+"</text>")) {
				t.Errorf("%s does not show that the %s: %s", f.Name, fault, f.Alternative())
			}
		}
	}
}

// shown checks the alternative text of an image of docs/benchmark.md.
func shown(t *testing.T, image, alternative string) {
	t.Helper()
	page := filepath.Join("..", "..", "..", "..", "docs", "benchmark.md")
	content := must.Get(os.ReadFile(page))(t)
	found := regexp.MustCompile(`!\[([^]]*)\]\(` + regexp.QuoteMeta(image) + `\)`).FindSubmatchIndex(content)
	switch {
	case found == nil:
		t.Errorf("the page does not show %s", image)
	case *update:
		content = slices.Concat(content[:found[2]], []byte(alternative), content[found[3]:])
		must.Do(t, os.WriteFile(page, content, 0o644))
	case string(content[found[2]:found[3]]) != alternative:
		t.Errorf("the page says %q about %s; want %q", content[found[2]:found[3]], image, alternative)
	}
}

func wellFormed(t *testing.T, name string, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf|="-`).Find(svg); bad != nil {
		t.Errorf("%s contains %s", name, bad)
	}
}

// Faults at the same time, at the edges and without recovery are drawn. A second without a grant is
// drawn too.
func TestMarksAndGapsOfATimeline(t *testing.T) {
	runs := recordedTimeline(t)
	r := &runs[0].Records[0]
	second := timeline.Second{Grants: 7, Wait: timeline.Times{P50: 1e6, P99: 2e6, Max: 3e6}}
	holder := timeline.Fault{Victim: timeline.Holder, At: 100 * time.Millisecond}
	r.Timeline = &timeline.Series{
		Seconds: []timeline.Second{second, {}, {}, second, second},
		Faults: []timeline.Outcome{
			{Fault: holder, Began: 100 * time.Millisecond, Gap: timeline.Gap{From: 100 * time.Millisecond, Longest: 50 * time.Millisecond}, Recovered: true, Lost: 1},
			{Fault: holder, Began: 150 * time.Millisecond, Gap: timeline.Gap{From: 150 * time.Millisecond, Longest: 3 * time.Second}, Recovered: true},
			{Fault: timeline.Fault{Victim: timeline.Leader}, Began: 4990 * time.Millisecond, Gap: timeline.Gap{From: 4990 * time.Millisecond, Longest: 10 * time.Millisecond}},
		},
		Missed: []timeline.Fault{holder},
	}
	sets := report.Group(runs)
	figures := report.Figures(sets[0])
	if len(figures) != 2 {
		t.Fatalf("%d figures; want two, because there are no handoffs", len(figures))
	}
	for _, f := range figures {
		svg := render(t, func(w io.Writer) error { return report.SVG(w, f) })
		wellFormed(t, f.Name, svg)
		if names := regexp.MustCompile(`y="([0-9]+)">(holder cut off|leader killed)<`).FindAllSubmatch(svg, -1); len(names) != 3 || bytes.Equal(names[0][1], names[1][1]) {
			t.Errorf("%s has the names %q; want three, and the first two in rows of their own", f.Name, names)
		}
		if shaded := bytes.Count(svg, []byte("fill-opacity")); shaded != 3 {
			t.Errorf("%s has %d shaded parts; want 3", f.Name, shaded)
		}
	}
	grants := render(t, func(w io.Writer) error { return report.SVG(w, figures[0]) })
	waits := render(t, func(w io.Writer) error { return report.SVG(w, figures[1]) })
	if n := lineSegments(grants); n != 1 {
		t.Errorf("the grants are drawn in %d parts; a second without a grant is a point at 0", n)
	}
	if n := lineSegments(waits); n != 2 {
		t.Errorf("the waits are drawn in %d parts; want 2, because seconds without a wait have none", n)
	}
	var rows [][]string
	for _, row := range report.Faults(runs[0].Records).Rows {
		rows = append(rows, row[3:])
	}
	want := [][]string{
		{"none yet", "-", "0s", "-", "-"},
		{"holder cut off", "0.1s", "50ms", "1", "-"},
		{"holder cut off", "0.1s", "3s", "0", "-"},
		{"leader killed", "5.0s", "over 10ms", "0", "-"},
		{"holder@100ms", "did not happen", "-", "-", "-"},
	}
	if len(rows) != len(want) {
		t.Fatalf("the table is %q", rows)
	}
	for i := range want {
		if strings.Join(rows[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d is %q; want %q", i, rows[i], want[i])
		}
	}
}

// lineSegments counts the parts of the first line of a figure.
func lineSegments(svg []byte) int {
	line := regexp.MustCompile(`class="line" d="([^"]+)"`).FindSubmatch(svg)
	return bytes.Count(line[1], []byte("M"))
}

// Timelines with different faults are not trials of one experiment.
func TestTimelinesWithOtherFaultsAreReportedApart(t *testing.T) {
	runs := append(recordedTimeline(t), recordedTimeline(t)...)
	if sets := report.Group(runs); len(sets) != 1 || len(report.Figures(sets[0])) != 6 {
		t.Fatalf("%d sets of equal timelines; want 1", len(sets))
	}
	runs[1].Records[0].Faults = runs[1].Records[0].Faults[:1]
	if sets := report.Group(runs); len(sets) != 2 {
		t.Errorf("%d sets; want 2", len(sets))
	}
}

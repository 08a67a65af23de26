package zkrecipes_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The figure of the README shows one handoff of a lock with three waiters. Time goes down.
const (
	figureFile  = "docs/handoff.svg"
	panelWidth  = 250
	columnWidth = 48
	rowHeight   = 21
	firstRow    = 74
	figureRows  = 11
)

// columns are the processes of each panel.
var columns = []string{"A", "ZK", "B", "C", "D"}

const holder, server, first, second, third = 0, 1, 2, 3, 4

// arrow is a message between two columns, or a grant if both are the same.
type arrow struct {
	from, to int
	text     string
}

var panels = []struct {
	name, cost string
	arrows     []arrow
}{
	{"Herd", "n events and n listings", []arrow{
		{holder, server, "delete"},
		{server, first, "event"}, {server, second, "event"}, {server, third, "event"},
		{first, server, "list"}, {second, server, "list"}, {third, server, "list"},
		{first, first, "granted"},
		{second, server, "watch"}, {third, server, "watch"},
	}},
	{"Predecessor", "1 event and 1 listing", []arrow{
		{holder, server, "delete"}, {server, first, "event"}, {first, server, "list"}, {first, first, "granted"},
	}},
	{"Handoff", "1 event", []arrow{
		{holder, server, "delete"}, {server, first, "event"}, {first, first, "granted"},
	}},
}

// figure draws the panels. The colours follow the reader's colour scheme, dark or light.
func figure() string {
	var b strings.Builder
	height := firstRow + figureRows*rowHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<title>A lock with three waiters changes hands by herd, predecessor and handoff</title>
<style>
text { fill: #24292f } .name { font-size: 15px; font-weight: bold } .small { font-size: 11px; fill: #57606a }
line { stroke: #8c959f } .arrow { stroke: #0969da; stroke-width: 1.5 } .head { fill: #0969da } .grant { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } line { stroke: #6e7681 } .arrow { stroke: #4493f8 } .head { fill: #4493f8 } .grant { fill: #3fb950 }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
`, len(panels)*panelWidth, height)
	for i, p := range panels {
		x := func(column int) int { return i*panelWidth + 28 + column*columnWidth }
		fmt.Fprintf(&b, `<text class="name" x="%d" y="20">%s</text><text class="small" x="%d" y="37">%s</text>`+"\n", x(0)-8, p.name, x(0)-8, p.cost)
		for column, name := range columns {
			fmt.Fprintf(&b, `<text x="%d" y="58" text-anchor="middle">%s</text><line x1="%d" y1="64" x2="%d" y2="%d"/>`+"\n",
				x(column), name, x(column), x(column), height-8)
		}
		for row, a := range p.arrows {
			y := firstRow + 8 + row*rowHeight
			if a.from == a.to {
				fmt.Fprintf(&b, `<circle class="grant" cx="%d" cy="%d" r="5"/><text x="%d" y="%d">%s</text>`+"\n", x(a.from), y-3, x(a.from)+9, y+1, a.text)
				continue
			}
			fmt.Fprintf(&b, `<line class="arrow" x1="%d" y1="%d" x2="%d" y2="%d" marker-end="url(#head)"/><text class="small" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n",
				x(a.from), y, x(a.to), y, x(min(a.from, a.to))+columnWidth/2, y-4, a.text)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// go test . -run TestTheFigureIsAsDrawn -update writes the figure.
func TestTheFigureIsAsDrawn(t *testing.T) {
	if *update {
		if err := os.WriteFile(figureFile, []byte(figure()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(figureFile); err != nil || string(drawn) != figure() {
		t.Errorf("%s is not what this file draws (%v): run with -update", figureFile, err)
	}
}

package table

import (
	"strconv"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
)

// column is a column of the table.
type column struct {
	head string
	cell func(r, baseline row) string
	// importance decides what goes first. A key stays where its values differ between
	// rows, however little room there is.
	importance int
	key        bool
}

// columns are from left to right.
var columns = []column{
	{"recipe", func(r, _ row) string { return string(r.Recipe) }, 2, true},
	{"workload", func(r, _ row) string { return string(r.Workload) }, 3, true},
	{"via", func(r, _ row) string { return r.Transport }, 1, true},
	{"delay", func(r, _ row) string { return r.Delay.String() }, 0, true},
	{"contenders", func(r, _ row) string { return strconv.Itoa(r.Contenders) }, 99, true},
	{"strategy", func(r, _ row) string { return string(r.Strategy) }, 98, true},
	{"runs", func(r, _ row) string { return strconv.Itoa(len(r.runs)) }, 8, false},
	median("time/op", unit.Time, 12),
	{"speed", row.speed, 20, false},
	median("handoffs/s", unit.Handoffs, 30),
	median("handoff p50", unit.HandoffP50, 11),
	median("handoff p99", unit.HandoffP99, 29),
	wait("wait p50", unit.WaitP50, 5),
	wait("wait p99", unit.WaitP99, 13),
	median("reads/op", unit.Reads, 9),
	median("writes/op", unit.Writes, 4),
	median("events/op", unit.Events, 10),
	median("bytes/op", unit.Bytes, 7),
	median("MB rss", unit.RSS, 6),
}

// wait is a column of medians of what has no handoffs.
func wait(head, of string, importance int) column {
	c := median(head, of, importance)
	cell := c.cell
	c.cell = func(r, baseline row) string {
		if r.Workload != load.Open && !r.Workload.Own() {
			return none
		}
		return cell(r, baseline)
	}
	return c
}

// median is a column of medians.
func median(head, of string, importance int) column {
	return column{head: head, importance: importance, cell: func(r, _ row) string {
		if v, ok := r.median(of); ok {
			return unit.Quantity(of, v)
		}
		return none
	}}
}

package table_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/table"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// drained returns a record whose figures are easy to check.
func drained(strategy recipes.Strategy, contenders int, handoff time.Duration) record.Record {
	handoffs := int64(contenders) - 1
	r := record.Record{
		Recipe: load.Election, Workload: load.Drain, Strategy: strategy, Contenders: contenders, Transport: "direct", Procs: 2,
		Measurement: load.Measurement{
			Operations: handoffs, Elapsed: time.Duration(handoffs) * handoff, Wait: histogram.New(), Handoff: histogram.New(),
			Counters: recipes.Stats{Reads: 2 * handoffs, Writes: handoffs, WatchEvents: handoffs, ResponseBytes: 1000 * handoffs},
		},
		Memory: record.Memory{RSS: 64 << 20},
	}
	_ = r.Handoff.RecordValues(int64(handoff), handoffs)
	return r
}

// records has several combinations, not in the order of a table.
func records() []record.Record {
	alone := drained(recipes.Herd, 2, 400*time.Microsecond)
	alone.Contenders, alone.Operations, alone.Elapsed, alone.Handoff = 1, 100, 100*time.Millisecond, histogram.New()
	cycled := drained(recipes.Predecessor, 10, time.Millisecond)
	cycled.Recipe, cycled.Workload, cycled.Hold, cycled.Transport = load.Lock, load.Cycle, 5*time.Millisecond, "plugin"
	return []record.Record{
		cycled, alone, drained(recipes.Predecessor, 100, 600*time.Microsecond),
		drained(recipes.Predecessor, 100, 400*time.Microsecond), drained(recipes.Herd, 100, 2*time.Millisecond),
	}
}

func written(t *testing.T, width int, records ...record.Record) string {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, table.Write(&out, records, width))
	return out.String()
}

func TestTable(t *testing.T) {
	got := written(t, 0, records()...) + "\n" + written(t, table.Narrow, records()...)
	file := filepath.Join("testdata", "table.txt")
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v; %s differs (rewrite with -update):\n%s", err, file, got)
	}
}

func TestTableFitsItsWidth(t *testing.T) {
	wide, _, _ := strings.Cut(written(t, 0, records()...), "\n")
	for width := 60; width < 200; width++ {
		text, left, _ := strings.Cut(written(t, width, records()...), "(no room for ")
		head, _, _ := strings.Cut(text, "\n")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > width {
				t.Fatalf("a line of %d in a width of %d:\n%s", n, width, text)
			}
		}
		for _, name := range strings.Fields(wide) {
			if !strings.Contains(head, name) && !strings.Contains(left, name) {
				t.Errorf("%q is neither in a table of width %d nor named:\n%s(%s", name, width, text, left)
			}
		}
		// Columns that differ between rows, and the result itself, stay.
		for _, name := range []string{"recipe", "workload", "via", "contenders", "strategy", "handoffs/s"} {
			if width >= 80 && !strings.Contains(head, name) {
				t.Errorf("a table of width %d has no %q", width, name)
			}
		}
	}
	// Columns with equal values are omitted first.
	text := written(t, 130, drained(recipes.Herd, 9, time.Second), drained(recipes.Predecessor, 9, time.Second))
	if head, _, _ := strings.Cut(text, "\n"); strings.Contains(head, "via") || !strings.Contains(head, "reads/op") {
		t.Errorf("of one transport:\n%s", text)
	}
}

// repeated returns trials of a strategy, with handoffs of that many microseconds.
func repeated(strategy recipes.Strategy, micros ...int) (all []record.Record) {
	for _, n := range micros {
		all = append(all, drained(strategy, 10, time.Duration(n)*time.Microsecond))
	}
	return all
}

// The table shows ~ where benchstat does.
func TestSpeedIsShownWhereItDiffers(t *testing.T) {
	herd := []int{400, 410, 390, 405, 395, 400}
	for _, tt := range []struct {
		name   string
		others []int
		want   string
	}{
		{"as fast", []int{410, 390, 400, 396, 404, 401}, "~"},
		{"faster in the median, by chance", []int{300, 310, 420, 300, 430, 440}, "~"},
		{"twice as fast", []int{200, 205, 195, 200, 210, 190}, "2.00x (1.93-2.08)"},
		{"too few trials for a test", []int{100, 100}, "too few"},
		{"few trials", []int{100, 101, 99, 100}, "4.00x (3.90-4.10)"},
	} {
		text := written(t, 0, append(repeated(recipes.Herd, herd...), repeated(recipes.Handoff, tt.others...)...)...)
		row := strings.Split(text, "\n")[2]
		if !strings.Contains(row, "  "+tt.want+"  ") {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, text)
		}
	}
}

// An open load has no handoffs; its latency is the wait of an acquisition.
func TestOpenLoadsShowTheirWaits(t *testing.T) {
	open := record.Record{
		Recipe: load.Lock, Workload: load.Open, Strategy: recipes.Handoff, Contenders: 4, Rate: 50, Transport: "direct", Procs: 2,
		Measurement: load.Measurement{Operations: 100, Elapsed: 2 * time.Second, Wait: histogram.New(), Handoff: histogram.New()},
	}
	_ = open.Wait.RecordValues(int64(3*time.Millisecond), 98)
	_ = open.Wait.RecordValues(int64(70*time.Millisecond), 2)
	for _, width := range []int{0, table.Narrow} {
		text := written(t, width, open)
		for _, want := range []string{"wait p50", "wait p99", "3ms", "70.1ms"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: no %q in\n%s", width, want, text)
			}
		}
		for _, none := range []string{"handoff p99", "speed", "handoffs/s", "time/op"} {
			if strings.Contains(text, none) {
				t.Errorf("width %d: an empty column %q in\n%s", width, none, text)
			}
		}
	}
}

func TestTableLeavesOutInvalidTrials(t *testing.T) {
	slow, fast := drained(recipes.Herd, 3, time.Hour), drained(recipes.Herd, 3, time.Second)
	slow.Invalid = []string{"busy"}
	if got, want := written(t, 0, slow, fast), written(t, 0, fast); got != want {
		t.Errorf("with an invalid record\n%swithout it\n%s", got, want)
	}
	alone := written(t, 0, slow)
	if rows := strings.Split(alone, "\n"); len(rows) != 3 || !strings.HasSuffix(rows[1], "  0") || strings.Contains(rows[1], "h0m0s") {
		t.Errorf("of an invalid record alone:\n%s", alone)
	}
}

func TestTableOfNothingIsEmpty(t *testing.T) {
	if text := written(t, 0); text != "" {
		t.Errorf("%q", text)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTableThatCannotBeWrittenIsAnError(t *testing.T) {
	if err := table.Write(full{}, records(), 0); err == nil {
		t.Error("no error")
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

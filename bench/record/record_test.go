package record_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/unit"
	"github.com/zkrecipes/zkrecipes/recipes"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var environment = record.Environment{
	OS: "linux", Arch: "amd64", Package: "example/bench", CPU: "A CPU",
	Server: record.Server{Version: "3.8.0", Servers: 3, Mode: "ensemble"},
}

// drained returns a record whose figures are easy to check.
func drained(strategy recipes.Strategy, contenders int, handoff time.Duration) record.Record {
	r := record.Record{
		Recipe: load.Election, Workload: load.Drain, Strategy: strategy, Contenders: contenders,
		Transport: "direct", Procs: 2,
		Measurement: load.Measurement{
			Operations: int64(contenders) - 1, Elapsed: time.Duration(contenders-1) * handoff,
			Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(),
			Counters: recipes.Stats{
				Reads: 2 * int64(contenders-1), Writes: int64(contenders) - 1,
				WatchEvents: int64(contenders) - 1, ResponseBytes: 1000 * int64(contenders-1),
			},
		},
		Memory: record.Memory{RSS: 64 << 20, Session: 100 << 10},
	}
	for range contenders - 1 {
		_ = r.Handoff.RecordValue(int64(handoff))
	}
	return r
}

// alone returns a record of a single contender.
func alone() record.Record {
	r := drained(recipes.Herd, 2, 400*time.Microsecond)
	r.Contenders, r.Operations, r.Elapsed = 1, 100, 100*time.Millisecond
	r.Handoff, r.Counters = histogram.New(), recipes.Stats{Reads: 200, Writes: 200, ResponseBytes: 1e5}
	_ = r.Wait.RecordValues(int64(500*time.Microsecond), 100)
	return r
}

// cycled returns a record of a cycle with a hold, from one processor.
func cycled() record.Record {
	r := drained(recipes.Predecessor, 10, time.Millisecond)
	r.Recipe, r.Workload, r.Hold, r.Procs, r.Transport = load.Lock, load.Cycle, 5*time.Millisecond, 1, "plugin"
	r.Memory = record.Memory{}
	r.Counters.ByKind = map[string]int64{"sync": r.Operations}
	_ = r.Wait.RecordValues(int64(50*time.Millisecond), 9)
	return r
}

func records() []record.Record {
	return []record.Record{
		drained(recipes.Herd, 100, 2*time.Millisecond),
		drained(recipes.Predecessor, 100, 400*time.Microsecond),
		drained(recipes.Predecessor, 100, 600*time.Microsecond),
		alone(),
		cycled(),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", file, got)
	}
}

func TestBenchmarkFormat(t *testing.T) {
	var out bytes.Buffer
	w := record.NewWriter(&out, environment)
	for _, r := range records() {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "benchmark.txt", out.Bytes())
	readBack(t, out.Bytes())
}

// readBack reads the output with the library that benchstat reads it with.
func readBack(t *testing.T, written []byte) {
	reader := benchfmt.NewReader(bytes.NewReader(written), "written")
	var names []string
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(r)
		case *benchfmt.Result:
			names = append(names, r.Name.String())
			if len(r.Config) != 7 {
				t.Errorf("%s has %d configuration lines; want 7", r.Name, len(r.Config))
			}
			if r.Values[0].Unit != "sec/op" {
				t.Errorf("%s starts with unit %s; want sec/op", r.Name, r.Values[0].Unit)
			}
			for _, v := range r.Values {
				if strings.HasSuffix(v.Unit, "-ns") || strings.HasPrefix(v.Unit, "MB") {
					t.Errorf("%s: unit %s was not tidied", r.Name, v.Unit)
				}
			}
		}
	}
	if err := reader.Err(); err != nil {
		t.Error(err)
	}
	if len(names) != len(records()) {
		t.Errorf("read %d results; want %d", len(names), len(records()))
	}
	for unit, want := range map[string]int{"handoffs/s": 1, "sec/op": -1, "p99-handoff-sec": -1, "reads/op": -1, "B-rss": -1} {
		if got := reader.Units().GetBetter(unit); got != want {
			t.Errorf("better of %s is %d; want %d", unit, got, want)
		}
	}
}

func TestNameOfARunWithoutProcsDoesNotEndLikeOne(t *testing.T) {
	r := cycled()
	base, parts := benchfmt.Name(r.Name()).Parts()
	if string(base) != "Lock" {
		t.Errorf("base name %q", base)
	}
	last := string(parts[len(parts)-1])
	if last != "/via=plugin" {
		t.Errorf("last part %q", last)
	}
}

// benchstat -col /delay compares by it.
func TestDelayIsPartOfTheName(t *testing.T) {
	r := cycled()
	without := r.Name()
	r.Delay = 500 * time.Microsecond
	_, parts := benchfmt.Name(r.Name()).Parts()
	var delay string
	for _, p := range parts {
		if value, ok := strings.CutPrefix(string(p), "/delay="); ok {
			delay = value
		}
	}
	if delay != "500us" || strings.Contains(without, "delay") {
		t.Errorf("delay %q in %s; without one it is %s", delay, r.Name(), without)
	}
}

func TestTimeOfZeroIsLeftOut(t *testing.T) {
	r := drained(recipes.Herd, 3, 0)
	for _, m := range r.Metrics() {
		if m.Unit == unit.Time || m.Unit == unit.Handoffs {
			t.Errorf("%s %v is there", m.Unit, m.Value)
		}
	}
}

func TestHereKnowsThisMachine(t *testing.T) {
	env := record.Here(record.Server{Servers: 1})
	if env.OS == "" || env.Arch == "" || env.Package == "" || env.Server.Servers != 1 {
		t.Errorf("%+v", env)
	}
}

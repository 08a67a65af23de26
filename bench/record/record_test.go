package record_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/internal/timeline"
	"github.com/zkrecipes/zkrecipes/internal/unit"
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

// withFaults returns the record of a timeline of two seconds. It has no counters.
func withFaults() record.Record {
	r := drained(recipes.Handoff, 10, time.Millisecond)
	leader := timeline.Fault{Victim: timeline.Leader, At: 100 * time.Millisecond, Restart: time.Second}
	holder := timeline.Fault{Victim: timeline.Holder, At: 1500 * time.Millisecond}
	r.Recipe, r.Workload, r.Faults, r.Counters, r.Elapsed = load.Lock, load.Timeline, []timeline.Fault{leader, holder}, recipes.Stats{}, 2*time.Second
	r.Timeline = &timeline.Series{
		Seconds: []timeline.Second{{Grants: 8, Wait: timeline.Times{P50: 1, P99: 2, Max: 3}}, {Grants: 1, Lost: 1}},
		Before:  timeline.Gap{From: 0, Longest: 50 * time.Millisecond},
		Faults:  []timeline.Outcome{{Fault: leader, Began: 100 * time.Millisecond, Gap: timeline.Gap{From: 100 * time.Millisecond, Longest: 700 * time.Millisecond}, Recovered: true, Back: 1800 * time.Millisecond}},
		Missed:  []timeline.Fault{holder},
	}
	return r
}

func records() []record.Record {
	return []record.Record{
		drained(recipes.Herd, 100, 2*time.Millisecond),
		drained(recipes.Predecessor, 100, 400*time.Microsecond),
		drained(recipes.Predecessor, 100, 600*time.Microsecond),
		alone(),
		cycled(),
		withFaults(),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		must.Do(t, os.MkdirAll("testdata", 0o777))
		must.Do(t, os.WriteFile(file, got, 0o666))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", file, got)
	}
}

func TestBenchmarkFormat(t *testing.T) {
	var out bytes.Buffer
	w := &record.Writer{Output: &out, Environment: environment}
	for _, r := range records() {
		must.Do(t, w.Write(r))
	}
	golden(t, "benchmark.txt", out.Bytes())
}

// benchstat -col /delay compares by the delay in the name.
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

func written(t *testing.T, records []record.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w := &record.JSONWriter{Output: &out, Environment: environment}
	for _, r := range records {
		must.Do(t, w.Write(r))
	}
	return out.Bytes()
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	all := records()
	open := cycled()
	open.Workload, open.Rate, open.Arrivals, open.Late = load.Open, 50, load.Poisson, histogram.New()
	_ = open.Late.RecordValue(int64(time.Millisecond))
	open.Unfinished, open.Turns, open.Warm = 3, []int64{1, 2, 3}, load.Warm{Took: time.Second, Steady: true}
	open.Delay = 1500 * time.Microsecond
	open.Trial, open.Invalid, open.Missing = 7, []string{"busy"}, []string{"cnt_fsynctime"}
	open.Server = map[string]float64{"packets_received": 12}
	open.Client = record.Client{CPU: 1, GC: 2, LongGC: 3, SchedP99: 4, Allocs: 5}
	all = append(all, open)
	text := written(t, all)
	golden(t, "records.jsonl", text)
	runs, err := record.Read(bytes.NewReader(text))
	if err != nil || len(runs) != 1 || !reflect.DeepEqual(runs[0].Environment, environment) {
		t.Fatalf("%+v, %v", runs, err)
	}
	for i, got := range runs[0].Records {
		if !reflect.DeepEqual(got.Metrics(), all[i].Metrics()) {
			t.Errorf("%s: metrics %v; want %v", got.Name(), got.Metrics(), all[i].Metrics())
		}
	}
	// Records are complete: written again, they give the same bytes.
	if again := written(t, runs[0].Records); !bytes.Equal(again, text) {
		t.Error("the records that were read are written differently")
	}
}

func TestBrokenRecordsAreNamedByTheirLine(t *testing.T) {
	text := string(written(t, records()))
	for want, broken := range map[string]string{
		"line 8":          text + "{\"Recipe\":\"lo",
		"line 1":          "\x00\x01",
		"record format 9": `{"zkbench":9}`,
		"histogram":       strings.Replace(text, "HIST", "MIST", 1),
		"missing":         `{"zkbench":1}` + "\n{}",
	} {
		if runs, err := record.Read(strings.NewReader(broken)); err == nil || !strings.Contains(err.Error(), want) || runs != nil {
			t.Errorf("%v, %v; want an error with %q", runs, err, want)
		}
	}
	if _, err := record.Read(strings.NewReader("")); !errors.Is(err, record.ErrNoRecords) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"zkbench":1,"environment":{}}` + "\n" + `{"Recipe":"lock","Workload":"drain","Contenders":2,"Operations":1,"histograms":{"wait":"HISTFAAAAAB42"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, err := record.Read(bytes.NewReader(text))
		if err != nil && runs != nil {
			t.Error("runs and an error")
		}
		for _, run := range runs {
			for _, r := range run.Records {
				r.Metrics()
			}
		}
	})
}

func TestMain(m *testing.M) { leaktest.Main(m) }

package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/zkbench/histogram"
)

// written returns records as JSON lines.
func written(t *testing.T, records []record.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w := record.NewJSONWriter(&out, environment)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
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
	// Whole records: written again they give the same bytes.
	if again := written(t, runs[0].Records); !bytes.Equal(again, text) {
		t.Error("the records that were read are written differently")
	}
}

func TestAppendedFilesAreTwoRuns(t *testing.T) {
	text := written(t, records())
	runs, err := record.Read(bytes.NewReader(append(text, text...)))
	if err != nil || len(runs) != 2 || len(runs[1].Records) != len(records()) {
		t.Errorf("%d runs, %v; want 2", len(runs), err)
	}
}

func TestBrokenRecordsAreNamedByTheirLine(t *testing.T) {
	text := string(written(t, records()))
	for want, broken := range map[string]string{
		"line 7":          text + "{\"Recipe\":\"lo",
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

// A record of an option that is gone is not one of the strategy that it was an option of.
func TestUnconfirmedRecordsAreOfAnotherStrategy(t *testing.T) {
	one := records()[0]
	text := string(written(t, []record.Record{one}))
	old := strings.Replace(text, `"Strategy":"`, `"Unconfirmed":true,"Strategy":"`, 1)
	if old == text {
		t.Fatalf("no strategy in %s", text)
	}
	runs, err := record.Read(strings.NewReader(old))
	if err != nil {
		t.Fatal(err)
	}
	read := runs[0].Records[0]
	if read.Strategy != one.Strategy+"-unconfirmed" || read.Name() == one.Name() {
		t.Errorf("read as strategy %q, %s", read.Strategy, read.Name())
	}
}

package validity_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/validity"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

// trial is a record of a second with nothing wrong with it.
func trial() record.Record {
	r := record.Record{Measurement: load.Measurement{
		Elapsed: time.Second,
		Handoff: histogram.New(), Wait: histogram.New(), Late: histogram.New(),
	}}
	_ = r.Handoff.RecordValue(int64(time.Millisecond))
	_ = r.Wait.RecordValue(int64(10 * time.Millisecond))
	return r
}

func TestLimitsNameWhatTheGeneratorRanOutOf(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*record.Record)
		want   string // "" for valid
	}{
		"nothing":    {func(*record.Record) {}, ""},
		"processors": {func(r *record.Record) { r.Client.CPU = time.Duration(runtime.GOMAXPROCS(0)) * time.Second }, "processors"},
		"processors of a longer time": {func(r *record.Record) {
			r.Client.CPU, r.Client.Took = time.Duration(runtime.GOMAXPROCS(0))*time.Second, 2*time.Second
		}, ""},
		"scheduler": {func(r *record.Record) { r.Client.SchedP99 = 5 * time.Millisecond }, "waited 5ms to run"},
		"short of a slow handoff": {func(r *record.Record) {
			r.Client.SchedP99 = 5 * time.Millisecond
			_ = r.Handoff.RecordValues(int64(time.Second), 9)
		}, ""},
		"garbage":        {func(r *record.Record) { r.Client.GC = 100 * time.Millisecond }, "garbage collection"},
		"late":           {func(r *record.Record) { _ = r.Late.RecordValue(int64(20 * time.Millisecond)) }, "behind schedule"},
		"late by little": {func(r *record.Record) { _ = r.Late.RecordValue(int64(time.Millisecond)) }, ""},
	} {
		r := trial()
		tt.change(&r)
		reasons := strings.Join(validity.For(false).Check(r), "; ")
		if (tt.want == "") != (reasons == "") || !strings.Contains(reasons, tt.want) {
			t.Errorf("%s: reasons %q; want %q", name, reasons, tt.want)
		}
	}
	r := trial()
	r.Client.CPU, r.Client.SchedP99 = time.Hour, time.Hour
	if reasons := validity.For(true).Check(r); reasons != nil {
		t.Errorf("with the server inside: %q", reasons)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

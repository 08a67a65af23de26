package workers

import (
	"reflect"
	"testing"
	"time"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
)

func measured() record.Record {
	r := record.Record{Recipe: load.Lock, Workload: load.Cycle, Contenders: 3, Trial: 2, Measurement: load.Measurement{
		Operations: 5, Elapsed: time.Second, Turns: []int64{1, 2, 2},
		Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
		Grants: []load.Grant{{Token: 100, Joined: -5, Granted: 7, Left: 9}, {Token: 1 << 40, Joined: 1, Granted: 1 << 30, Left: 1 << 31}},
	}}
	for i := range 1000 {
		_ = r.Wait.RecordValue(int64(i * i * 1000))
	}
	return r
}

func TestPartArrivesAsItWas(t *testing.T) {
	r := measured()
	data := must.Get(encode(r))(t)
	got := must.Get(decode(data))(t)
	if !reflect.DeepEqual(got.Grants, r.Grants) || !got.Wait.Equals(r.Wait) || got.Wait.TotalCount() != 1000 || !reflect.DeepEqual(got.Turns, r.Turns) || got.Trial != 2 {
		t.Errorf("%+v arrived as %+v", r, got)
	}
}

// FuzzDecode decodes arbitrary bytes. decode refuses them, or returns a record that can be encoded
// again.
func FuzzDecode(f *testing.F) {
	data := must.Get(encode(measured()))(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data)
		if err != nil {
			return
		}
		if _, err := encode(r); err != nil {
			t.Errorf("decoded and not encoded: %v", err)
		}
	})
}

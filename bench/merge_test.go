package bench_test

import (
	"strings"
	"testing"

	"github.com/zkrecipes/zkrecipes/bench"
	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/testing/fake"
)

// parts are two records of one trial, of machines with so many processors.
func parts(t *testing.T, first, second int) []record.Record {
	t.Helper()
	e := experiment(new(fake.World))
	var all []record.Record
	for _, procs := range []int{first, second} {
		r, err := e.Run(t.Context(), e.Trials()[0])
		if err != nil {
			t.Fatal(err)
		}
		r.Procs = procs
		all = append(all, r)
	}
	return all
}

func TestMachinesOfDifferentSizesMeasureTogether(t *testing.T) {
	for _, order := range [][2]int{{8, 4}, {4, 8}} {
		whole, err := bench.Merge(parts(t, order[0], order[1]))
		if err != nil || whole.Procs != 4 {
			t.Errorf("of machines with %v processors: GOMAXPROCS %d, %v; want 4", order, whole.Procs, err)
		}
	}
}

func TestPartsOfDifferentTrialsAreNotAdded(t *testing.T) {
	all := parts(t, 4, 4)
	all[1].Contenders++
	if _, err := bench.Merge(all); err == nil || !strings.Contains(err.Error(), "worker 2 measured trial 1") {
		t.Errorf("%v; want an error that names the parts", err)
	}
}

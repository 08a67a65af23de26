package slo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zkrecipes/zkrecipes/cmd/zkbench/internal/slo"
	"github.com/zkrecipes/zkrecipes/internal/testing/leaktest"
)

// search returns a search that can find any load.
func search() slo.Search {
	return slo.Search{From: 1, To: 1000, Limit: 100, Probes: 3, Precision: 1e-9}
}

func TestSearchFindsTheEdge(t *testing.T) {
	for _, edge := range []int{1, 2, 3, 7, 64, 100, 999} {
		r, err := search().Run(t.Context(), func(_ context.Context, load int) (float64, error) {
			return 100 * float64(load) / float64(edge), nil
		})
		if err != nil || r.LastPass != edge || r.FirstFail != edge+1 {
			t.Errorf("edge %d: last pass %d, first fail %d, %v", edge, r.LastPass, r.FirstFail, err)
		}
		for _, level := range r.Levels {
			if len(level.Values) != 2 {
				t.Errorf("load %d was probed %d times; two of three decide", level.Load, len(level.Values))
			}
		}
	}
}

func TestSearchEndsAtItsBounds(t *testing.T) {
	r, err := search().Run(t.Context(), func(context.Context, int) (float64, error) { return 1, nil })
	if err != nil || r.LastPass != 1000 || r.FirstFail != 0 {
		t.Errorf("everything passes: %+v, %v", r, err)
	}
	r, err = search().Run(t.Context(), func(context.Context, int) (float64, error) { return 0, slo.ErrMissed })
	if err != nil || r.LastPass != 0 || r.FirstFail != 1 || r.Levels[0].Passed {
		t.Errorf("nothing passes: %+v, %v", r, err)
	}
}

func TestOneNoisyProbeDoesNotDecide(t *testing.T) {
	probes := 0
	r, err := search().Run(t.Context(), func(_ context.Context, load int) (float64, error) {
		if probes++; probes%3 == 1 {
			return 1e9, nil
		}
		return float64(load), nil
	})
	if err != nil || r.LastPass != 100 || r.FirstFail != 101 {
		t.Errorf("last pass %d, first fail %d, %v; want 100 and 101", r.LastPass, r.FirstFail, err)
	}
}

func TestSearchStopsWhenItIsPreciseEnough(t *testing.T) {
	s := search()
	s.Precision = 0.25
	r, err := s.Run(t.Context(), func(_ context.Context, load int) (float64, error) { return float64(load), nil })
	if err != nil || r.LastPass > 100 || r.FirstFail <= 100 || float64(r.FirstFail-r.LastPass) > 0.25*float64(r.LastPass) {
		t.Errorf("last pass %d, first fail %d, %v", r.LastPass, r.FirstFail, err)
	}
}

func TestErrorOfAProbeKeepsWhatWasFound(t *testing.T) {
	broken := errors.New("the server is gone")
	r, err := search().Run(t.Context(), func(_ context.Context, load int) (float64, error) {
		if load > 4 {
			return 0, broken
		}
		return 1, nil
	})
	if !errors.Is(err, broken) || r.LastPass != 4 {
		t.Errorf("%+v, %v; want 4 and the error", r, err)
	}
	for _, s := range []slo.Search{{}, {From: 2, To: 1, Limit: 1, Probes: 1, Precision: 1}, {From: 1, To: 2, Probes: 1, Precision: 1}, {From: 1, To: 2, Limit: 1, Precision: 1}} {
		if _, err := s.Run(t.Context(), nil); err == nil {
			t.Errorf("%+v was run", s)
		}
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

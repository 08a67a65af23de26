package load_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/zkrecipes/zkrecipes/bench/load"
	"github.com/zkrecipes/zkrecipes/internal/histogram"
	"github.com/zkrecipes/zkrecipes/internal/testing/must"
	"github.com/zkrecipes/zkrecipes/recipes"
)

func empty() load.Measurement {
	return load.Measurement{
		Wait: histogram.New(), Handoff: histogram.New(), Service: histogram.New(), Late: histogram.New(),
	}
}

func TestMergedHistogramIsThatOfAllSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parts := []load.Measurement{empty(), empty(), empty()}
	all := empty()
	histograms := func(m load.Measurement) []*hdrhistogram.Histogram {
		return []*hdrhistogram.Histogram{m.Wait, m.Handoff, m.Service, m.Late}
	}
	for range 30_000 {
		h, p := random.IntN(4), random.IntN(3)
		v := int64(random.ExpFloat64() * float64(50*time.Millisecond))
		for _, m := range []load.Measurement{parts[p], all} {
			must.Do(t, histograms(m)[h].RecordValue(v))
		}
	}
	for i := range parts {
		parts[i].Operations, parts[i].Elapsed = int64(10*i), time.Duration(i)*time.Second
		parts[i].Turns = []int64{int64(i)}
		parts[i].Counters = recipes.Stats{Reads: int64(i), ByKind: map[string]int64{"create": 2}}
	}
	sum := must.Get(load.Many.Merge(parts))(t)
	for i, h := range histograms(sum) {
		if want := histograms(all)[i]; !h.Equals(want) || h.TotalCount() != want.TotalCount() {
			t.Errorf("histogram %d of the sum is not that of all samples", i)
		}
	}
	if sum.Operations != 30 || sum.Elapsed != 2*time.Second || sum.Counters.Reads != 3 || sum.Counters.ByKind["create"] != 6 || !reflect.DeepEqual(sum.Turns, []int64{0, 1, 2}) {
		t.Errorf("%d operations in %v, turns %v, %+v", sum.Operations, sum.Elapsed, sum.Turns, sum.Counters)
	}
}

// grants returns grants that begin at intervals of one millisecond, and last half a millisecond
// each.
func grants(tokens ...recipes.Token) load.Measurement {
	m := empty()
	for _, token := range tokens {
		at := time.Duration(token) * time.Millisecond
		m.Grants = append(m.Grants, load.Grant{Token: token, Granted: at, Left: at + time.Millisecond/2})
		m.Operations++
	}
	return m
}

func TestHandoffsOfASharedLineAreThoseWithinAProcess(t *testing.T) {
	sum := must.Get(load.Drain.Merge([]load.Measurement{grants(1, 2, 5), grants(3, 4, 6, 7)}))(t)
	// The handoffs within one process are 1-2, 3-4 and 6-7.
	if sum.Operations != 6 || sum.Handoff.TotalCount() != 3 || sum.Handoff.Max()/1e4 != 50 {
		t.Errorf("%d operations, %d handoffs, the longest %v; want 6, 3 of half a millisecond", sum.Operations, sum.Handoff.TotalCount(), time.Duration(sum.Handoff.Max()))
	}
	if sum.Grants != nil {
		t.Error("the sum keeps all grants")
	}
	if open, err := load.Open.Merge([]load.Measurement{grants(1, 2)}); err != nil || open.Operations != 2 {
		t.Errorf("an open load has %d operations, %v; want 2: they are acquisitions", open.Operations, err)
	}
}

func TestTokensAreCheckedAcrossProcesses(t *testing.T) {
	for name, parts := range map[string][]load.Measurement{
		"the same token twice":        {grants(1, 2), grants(2, 3)},
		"a token that does not grow":  {grants(1, 2), grants(5, 4)},
		"the same token in a process": {grants(1, 1), grants(3)},
	} {
		for _, w := range []load.Workload{load.Drain, load.Cycle, load.Open} {
			if _, err := w.Merge(parts); !errors.Is(err, load.ErrBroken) {
				t.Errorf("%s, %s: %v; want a violation", name, w, err)
			}
		}
	}
}

// Two machines whose clocks differ by five minutes measure the same as two with equal clocks,
// because only differences within one process count.
func TestDifferentClocksChangeNothing(t *testing.T) {
	part := func(apart time.Duration, tokens ...int64) load.Measurement {
		m := empty()
		m.Operations, m.Elapsed = int64(len(tokens)), time.Second
		for _, token := range tokens {
			at := apart + time.Duration(token)*time.Millisecond
			m.Grants = append(m.Grants, load.Grant{Token: recipes.Token(token), Joined: apart, Granted: at, Left: at + 100*time.Microsecond})
		}
		return m
	}
	merged := func(apart time.Duration) load.Measurement {
		m := must.Get(load.Drain.Merge([]load.Measurement{part(0, 1, 2, 5, 6), part(apart, 3, 4, 7, 8)}))(t)
		return m
	}
	same := merged(0)
	for _, apart := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		m := merged(apart)
		if m.Operations != same.Operations || m.Elapsed != same.Elapsed || !slices.Equal(values(m.Handoff), values(same.Handoff)) {
			t.Errorf("clocks %v apart: %d operations in %v, handoffs %v; want %d in %v, %v", apart,
				m.Operations, m.Elapsed, values(m.Handoff), same.Operations, same.Elapsed, values(same.Handoff))
		}
	}
	if n := same.Handoff.TotalCount(); n != 4 {
		t.Errorf("%d handoffs within one process; want 4", n)
	}
}

// values returns the count of each value in a histogram.
func values(h *hdrhistogram.Histogram) (all []int64) {
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			all = append(all, bar.From, bar.Count)
		}
	}
	return all
}

package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// The nine pairs are those of Hollander and Wolfe (1973), which the page of R's wilcox.test has as
// an example. R gives V = 40 and p = 0.03906.
func TestSignedRankOfTheDepressionScores(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	ratios := make([]float64, len(x))
	for i := range x {
		ratios[i] = math.Exp(x[i] - y[i])
	}
	if p := signedRank(ratios); math.Abs(p-0.0390625) > 1e-12 {
		t.Errorf("%v", p)
	}
}

// TestSignedRankCountsEveryAssignment compares the test with its definition: the share
// of all assignments of signs that are at least as extreme. There are ties.
func TestSignedRankCountsEveryAssignment(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		ratios := make([]float64, 1+random.IntN(9))
		for i := range ratios {
			ratios[i] = math.Exp(float64(random.IntN(9) - 4))
		}
		if p, want := signedRank(ratios), byEnumeration(ratios); math.Abs(p-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", ratios, p, want)
		}
	}
	if p := signedRank([]float64{1, 1, 1}); p != 1 {
		t.Errorf("equal sides: %v", p)
	}
}

func byEnumeration(ratios []float64) float64 {
	var sizes []float64
	observed := 0.0 // signed sum of ranks
	for _, r := range ratios {
		if r != 1 {
			sizes = append(sizes, math.Abs(math.Log(r)))
		}
	}
	rank := func(size float64) (rank float64) {
		for _, other := range sizes {
			switch {
			case other < size:
				rank++
			case other == size:
				rank += 0.5
			}
		}
		return rank + 0.5
	}
	for _, r := range ratios {
		if l := math.Log(r); l != 0 {
			observed += math.Copysign(rank(math.Abs(l)), l)
		}
	}
	extreme := 0
	for signs := range 1 << len(sizes) {
		sum := 0.0
		for i, size := range sizes {
			sum += rank(size) * float64(2*(signs>>i&1)-1)
		}
		if math.Abs(sum) >= math.Abs(observed)-1e-9 {
			extreme++
		}
	}
	return float64(extreme) / float64(int(1)<<len(sizes))
}

// pairs returns two sides from a machine that is up to twice as slow at times. The trials of a
// pair differ by some per cent, and the second side is slower by that factor.
func pairs(t *testing.T, seed uint64, count int, slower float64) (a, b *Side) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var texts [2]strings.Builder
	drift := 0.0
	for range count {
		drift = 0.8*drift + 0.2*random.NormFloat64()
		for n := range 3 {
			for side := range texts {
				ns := 1e6 * float64(n+1) * math.Exp(drift+0.05*random.NormFloat64())
				if side == 1 {
					ns *= slower
				}
				fmt.Fprintf(&texts[side], "BenchmarkLine/contenders=%d-2 100 %.0f ns/op\n", n+1, ns)
			}
		}
	}
	var sides [2]*Side
	for i, text := range texts {
		var err error
		if sides[i], err = Read(strings.NewReader(text.String()), string(rune('A'+i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	return sides[0], sides[1]
}

// Of twenty comparisons of equal sides, at most one shows a change. A planted change of 10 % is
// found at least nineteen times in twenty; the U test does not find it in the noise.
func TestPairedOnANoisyMachine(t *testing.T) {
	const runs = 200
	alarms, found, foundUnpaired := 0, 0, 0
	for seed := range uint64(runs) {
		a, b := pairs(t, seed, 20, 1)
		if r, err := Paired(a, b, DefaultOptions()); err != nil || r.Better+r.Worse > 0 {
			alarms++
		}
		a, b = pairs(t, seed, 20, 1.1)
		if r, err := Paired(a, b, DefaultOptions()); err == nil && r.Worse > 0 && r.Better == 0 {
			found++
		}
		if r, err := Compare(a, b, DefaultOptions()); err == nil && r.Worse > 0 {
			foundUnpaired++
		}
	}
	t.Logf("of %d: %d false alarms; planted 10 %% found %d times, %d by the U test", runs, alarms, found, foundUnpaired)
	if alarms > runs/20 || found < runs*19/20 || foundUnpaired > runs/2 {
		t.Errorf("of %d: %d false alarms; planted 10 %% found %d times, %d by the U test", runs, alarms, found, foundUnpaired)
	}
}

func TestPairedRefusesUnequalNumbersOfTrials(t *testing.T) {
	a, _ := pairs(t, 1, 3, 1)
	_, b := pairs(t, 1, 4, 1)
	if _, err := Paired(a, b, DefaultOptions()); err == nil || !strings.Contains(err.Error(), "3 trials of A and 4 of B are not pairs") {
		t.Error(err)
	}
	// Some units exist in some trials only.
	o := DefaultOptions()
	o.Units = []string{"fsyncs/op"}
	for _, side := range []*Side{a, b} {
		_ = side.readText(strings.NewReader("BenchmarkLine/contenders=1-2 100 1 fsyncs/op\n"), nil)
	}
	if _, err := Paired(a, b, o); err != nil {
		t.Errorf("a unit that is not compared: %v", err)
	}
}

// Five pairs cannot show a change at 5 %.
func TestPairedSaysThatPairsAreTooFew(t *testing.T) {
	a, b := pairs(t, 1, 5, 2)
	r, err := Paired(a, b, DefaultOptions())
	if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "too few trials in 3 of 3 comparisons") {
		t.Errorf("%v, %q", err, r.Warnings)
	}
}

package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"

	"github.com/zkrecipes/zkrecipes/bench/record"
	"github.com/zkrecipes/zkrecipes/internal/english"
)

// OfRuns returns a side with the results of runs, as [Read] does for a file.
func OfRuns(name string, runs []record.Run) (*Side, error) {
	text, err := benchmarksOf(runs)
	if err != nil {
		return nil, err
	}
	side := newSide(name)
	return side, side.readText(text, nil)
}

// Paired compares two sides whose trials were run in pairs: the i-th trials of a benchmark
// ran one right after the other, on the same servers. Other load on the machine slowed both trials
// of a pair alike. So the change is the median of the pairs' ratios, and the test is Wilcoxon's
// signed-rank test of their logarithms. It finds changes that the U test cannot distinguish from a
// machine that is fast at times and slow at others. It is an error if the numbers of trials with a
// compared unit differ.
func Paired(a, b *Side, o Options) (Result, error) {
	r := Result{Options: o, Old: a.Name, New: b.Name, test: "Wilcoxon signed-rank, in pairs", least: leastPaired}
	for _, k := range a.order {
		if n, m := len(a.values[k]), len(b.values[k]); m > 0 && n != m && o.compares(k) {
			return r, fmt.Errorf("%s: %s of %s and %d of %s are not pairs", k.benchmark, english.Count(n, "trial"), a.Name, m, b.Name)
		}
	}
	return compareBy(r, a, b, pairedRow)
}

func pairedRow(k key, old, new []float64, o Options) Row {
	ratios := make([]float64, len(old))
	for i := range old {
		ratios[i] = 1 + change(old[i], new[i])
	}
	row := compare(k, old, new, o)
	row.P = signedRank(ratios)
	row.Change = benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), o.Confidence).Center - 1
	return row
}

// signedRank returns the exact two-sided p-value of Wilcoxon's signed-rank test (1945),
// under the hypothesis that the logarithms of the ratios are symmetric around 0. Ratios of 1
// are left out, and equal ones share their ranks.
func signedRank(ratios []float64) float64 {
	var logs []float64
	for _, r := range ratios {
		if l := math.Log(r); l != 0 && !math.IsNaN(l) {
			logs = append(logs, l)
		}
	}
	slices.SortFunc(logs, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	// Ranks are doubled, so that shared ranks are whole numbers.
	ranks := make([]int, len(logs))
	for from := 0; from < len(logs); {
		to := from + 1
		for to < len(logs) && math.Abs(logs[to]) == math.Abs(logs[from]) {
			to++
		}
		for i := from; i < to; i++ {
			ranks[i] = from + 1 + to // twice the mean of from+1..to
		}
		from = to
	}
	above, all := 0, 0
	for i, l := range logs {
		if l > 0 {
			above += ranks[i]
		}
		all += ranks[i]
	}
	// chance[s] is the probability that the ranks of ratios above 1 sum to s, if each is
	// above or below with the same probability.
	chance := make([]float64, all+1)
	chance[0] = 1
	for _, rank := range ranks {
		for s := all; s >= 0; s-- {
			chance[s] /= 2
			if s >= rank {
				chance[s] += chance[s-rank] / 2
			}
		}
	}
	tail := 0.0
	for _, c := range chance[:min(above, all-above)+1] {
		tail += c
	}
	return min(1, 2*tail)
}

// leastPaired is the smallest p-value that n pairs can give.
func leastPaired(n, _ int) float64 { return min(1, math.Ldexp(1, 1-n)) }

package plan

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/zkrecipes/zkrecipes/recipes"
)

type term func(n float64) float64

// Terms of models; see the package comment.
func one(float64) float64         { return 1 }
func linear(n float64) float64    { return n }
func quadratic(n float64) float64 { return n * n }
func waits(n float64) float64     { return n - 1 }
func pairs(n float64) float64     { return n * (n - 1) }
func first(n float64) float64     { return 1 / (n - 1) }
func waited(n float64) float64    { return (n - 2) / (n - 1) }

type point struct{ n, y, w float64 }

// fit returns the non-negative coefficients of terms that minimize the weighted sum of
// squared relative errors. At the optimum, the non-zero coefficients are the least-squares solution
// for their terms alone. There are so few terms that fit tries all subsets, so the result is exact.
func fit(terms []term, points []point) []float64 {
	best, least := make([]float64, len(terms)), math.Inf(1)
	for set := 1; set < 1<<len(terms); set++ {
		coefficients, ok := solve(terms, points, set)
		if !ok {
			continue
		}
		if e := squares(terms, coefficients, points); e < least {
			best, least = coefficients, e
		}
	}
	return best
}

func value(terms []term, coefficients []float64, n float64) (sum float64) {
	for i, t := range terms {
		sum += coefficients[i] * t(n)
	}
	return sum
}

func squares(terms []term, coefficients []float64, points []point) (sum float64) {
	for _, p := range points {
		e := value(terms, coefficients, p.n)/p.y - 1
		sum += p.w * e * e
	}
	return sum
}

// solve returns the least squares of the terms in set. It returns false if the equations are
// singular or a coefficient is negative.
func solve(terms []term, points []point, set int) ([]float64, bool) {
	var used []int
	for i := range terms {
		if set&(1<<i) != 0 {
			used = append(used, i)
		}
	}
	shares, ones := mat.NewDense(len(points), len(used), nil), mat.NewVecDense(len(points), nil)
	for row, p := range points {
		weight := math.Sqrt(p.w)
		ones.SetVec(row, weight)
		for column, i := range used {
			shares.Set(row, column, weight*terms[i](p.n)/p.y)
		}
	}
	var solution mat.VecDense
	if solution.SolveVec(shares, ones) != nil {
		return nil, false
	}
	coefficients := make([]float64, len(terms))
	for column, i := range used {
		coefficients[i] = solution.AtVec(column)
	}
	return coefficients, slices.Min(coefficients) >= 0
}

// leastDrift is the smallest drift of a service: its error for each factor of e beyond the
// measured levels, as a logarithm. Even after a good sweep something can change beyond it.
const leastDrift = 0.05

// firstLevels is how many levels a law is fitted to before backtest predicts the next.
const firstLevels = 4

// constant, growing and squared are laws for the time of a handoff. Each has a constant part
// and a part for the first handoff of a trial. The last two also have parts that grow with the
// listings.
var (
	constant = law{[]term{one, first}, false}
	growing  = law{[]term{one, first, linear}, false}
	squared  = law{[]term{one, first, linear, quadratic}, false}
)

// newServiceOf fits the time of a handoff under a strategy. Handoff lists nothing. In a herd
// each contender lists, so the work of a handoff grows with the square of the line. Its time may
// grow more slowly: the next holder is not always the last one to get its reply, and a contender
// that lists late has less to do. Short lines do not show by how much. So the estimate lies
// between a linear and a quadratic law, and the interval contains both.
func newServiceOf(s recipes.Strategy, levels []int, values [][]float64) *service {
	switch s {
	case recipes.Handoff:
		return newService(constant, levels, values)
	case recipes.Herd:
		most := newService(squared, levels, values)
		most.least = newService(growing, levels, values)
		return most
	}
	return newService(growing, levels, values)
}

type service struct {
	law     law
	fitted  []float64
	largest float64 // level
	scatter float64 // standard deviation of logarithms: trials around their level, and levels around the law
	drift   float64 // see leastDrift and backtest
	freedom float64
	errs    []float64 // errors of predicting each level from those below it, as shares
	least   *service  // for a herd, the estimate by the linear law: see newServiceOf
}

// newService fits a law to the trials of each level. Levels with few handoffs count less.
func newService(law law, levels []int, values [][]float64) *service {
	points := make([]point, len(levels))
	for i, n := range levels {
		points[i] = point{float64(n), median(values[i]), trust(n)}
	}
	s := &service{law: law, fitted: law.fit(points), largest: points[len(points)-1].n, freedom: float64(len(levels) - 1)}
	var trials, residuals, all float64
	for i, p := range points {
		trials += p.w * squaresAround(values[i], p.y)
		residuals += p.w * square(math.Log(p.y/law.at(s.fitted, p.n)))
		all += p.w
	}
	s.scatter = math.Sqrt((trials + residuals) / all)
	s.backtest(points, values)
	return s
}

// trust is the weight of a level. The first handoffs of a trial are slower than the others,
// by an amount that differs from trial to trial.
func trust(n int) float64 { return float64(n-1) / float64(n-1+50) }

// backtest predicts each level from those below it. It attributes the error beyond the
// scatter of trials to the distance.
func (s *service) backtest(points []point, values [][]float64) {
	var drifts, all float64
	for i := firstLevels; i < len(points); i++ {
		p, below := points[i], points[:i]
		miss := math.Log(p.y / s.law.at(s.law.fit(below), p.n))
		s.errs = append(s.errs, math.Abs(math.Expm1(miss)))
		noise := squaresAround(values[i], p.y) / float64(len(values[i]))
		drifts += p.w * max(0, square(miss)-noise) / square(math.Log(p.n/below[i-1].n))
		all += p.w
	}
	s.drift = leastDrift
	if all > 0 {
		s.drift = max(leastDrift, math.Sqrt(drifts/all))
	}
}

// squaresAround is the mean squared logarithm of values over their median.
func squaresAround(values []float64, median float64) (sum float64) {
	for _, v := range values {
		sum += square(math.Log(v / median))
	}
	return sum / float64(len(values))
}

func square(x float64) float64 { return x * x }

func (s *service) at(unit string, n float64) Estimate {
	if s.least == nil {
		return s.byLaw(unit, n)
	}
	least, most := s.least.byLaw(unit, n), s.byLaw(unit, n)
	most.Value = math.Sqrt(least.Value * most.Value)
	most.Lo, most.Hi = min(least.Lo, most.Lo), max(least.Hi, most.Hi)
	return most
}

func (s *service) byLaw(unit string, n float64) Estimate {
	e := Estimate{Unit: unit, Value: s.law.at(s.fitted, n)}
	far := max(0, math.Log(n/s.largest))
	deviation := math.Sqrt(square(s.scatter) + square(s.drift*far))
	width := math.Exp(deviation * distuv.StudentsT{Sigma: 1, Nu: s.freedom}.Quantile((1+confidence)/2))
	e.Lo, e.Hi = e.Value/width, e.Value*width
	if len(s.errs) > 0 {
		e.Typical, e.Worst = median(s.errs), slices.Max(s.errs)
	}
	return e
}

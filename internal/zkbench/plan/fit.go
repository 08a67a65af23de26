package plan

import (
	"math"
	"slices"

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
// squared relative errors. In the optimum, the terms with non-zero coefficients solve their
// own least squares. With so few terms fit tries all subsets, and the best is exact.
func fit(terms []term, points []point) []float64 {
	best, least := make([]float64, len(terms)), math.Inf(1)
	equations := normal(terms, points)
	for set := 1; set < 1<<len(terms); set++ {
		coefficients, ok := solve(equations, set)
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

func normal(terms []term, points []point) [][]float64 {
	k := len(terms)
	matrix := make([][]float64, k)
	for i := range matrix {
		matrix[i] = make([]float64, k+1)
		for _, p := range points {
			x := p.w * terms[i](p.n) / p.y
			for j, t := range terms {
				matrix[i][j] += x * t(p.n) / p.y
			}
			matrix[i][k] += x
		}
	}
	return matrix
}

// solve solves the equations of the terms in set. It returns false if they are singular or
// a coefficient is negative.
func solve(equations [][]float64, set int) ([]float64, bool) {
	var used []int
	for i := range equations {
		if set&(1<<i) != 0 {
			used = append(used, i)
		}
	}
	var matrix [][]float64
	for _, i := range used {
		var row []float64
		for _, j := range append(used[:len(used):len(used)], len(equations)) {
			row = append(row, equations[i][j])
		}
		matrix = append(matrix, row)
	}
	solution, ok := eliminate(matrix)
	if !ok {
		return nil, false
	}
	coefficients := make([]float64, len(equations))
	for i, c := range solution {
		if c < 0 {
			return nil, false
		}
		coefficients[used[i]] = c
	}
	return coefficients, true
}

func eliminate(m [][]float64) ([]float64, bool) {
	k := len(m)
	for c := range k {
		pivot := c
		for r := c + 1; r < k; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		if math.Abs(m[pivot][c]) < 1e-300 {
			return nil, false
		}
		m[c], m[pivot] = m[pivot], m[c]
		for r := range k {
			if r == c {
				continue
			}
			f := m[r][c] / m[c][c]
			for j := c; j <= k; j++ {
				m[r][j] -= f * m[c][j]
			}
		}
	}
	solution := make([]float64, k)
	for i := range solution {
		if solution[i] = m[i][k] / m[i][i]; math.IsNaN(solution[i]) {
			return nil, false
		}
	}
	return solution, true
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
	scatter float64 // of logarithms: of trials around their level, and of levels around the law
	drift   float64 // see leastDrift and backtest
	freedom float64
	errs    []float64 // of levels predicted from those below, as shares
	least   *service  // of a herd: by the linear law, see newServiceOf
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

// studentAt95 is the 97.5th percentile of Student's t, by the expansion of Cornish and
// Fisher. From 4 degrees of freedom on its error is below 0.5 %.
func studentAt95(freedom float64) float64 {
	const z = 1.959964
	return z + (z*z*z+z)/(4*freedom) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*freedom*freedom) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*math.Pow(freedom, 3))
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
	width := math.Exp(deviation * studentAt95(s.freedom))
	e.Lo, e.Hi = e.Value/width, e.Value*width
	if len(s.errs) > 0 {
		e.Typical, e.Worst = median(s.errs), slices.Max(s.errs)
	}
	return e
}

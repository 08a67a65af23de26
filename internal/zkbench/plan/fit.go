package plan

import "math"

// term is one term of a model: a function of the number of contenders.
type term func(n float64) float64

// Terms of models; see the package comment.
func one(float64) float64         { return 1 }
func linear(n float64) float64    { return n }
func quadratic(n float64) float64 { return n * n }
func waits(n float64) float64     { return n - 1 }
func pairs(n float64) float64     { return n * (n - 1) }
func first(n float64) float64     { return 1 / (n - 1) }
func waited(n float64) float64    { return (n - 2) / (n - 1) }

// point is a value at a number of contenders, and its weight.
type point struct{ n, y, w float64 }

// fit returns the non-negative coefficients of terms that make the sum of the
// squared relative errors, weighted, least. With so few terms the best of all subsets of
// them is the exact answer: in the optimum, the terms that are not zero solve
// their own least squares.
func fit(terms []term, points []point) []float64 {
	best, least := make([]float64, len(terms)), math.Inf(1)
	for set := 1; set < 1<<len(terms); set++ {
		coefficients, ok := solve(terms, set, points)
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

// squares is the sum of squared relative errors.
func squares(terms []term, coefficients []float64, points []point) (sum float64) {
	for _, p := range points {
		e := value(terms, coefficients, p.n)/p.y - 1
		sum += p.w * e * e
	}
	return sum
}

// solve solves the normal equations of the terms in set. It reports false if they
// are singular or a coefficient is negative.
func solve(terms []term, set int, points []point) ([]float64, bool) {
	var used []int
	for i := range terms {
		if set&(1<<i) != 0 {
			used = append(used, i)
		}
	}
	k := len(used)
	matrix := make([][]float64, k) // with the right side as the last column
	for i := range matrix {
		matrix[i] = make([]float64, k+1)
		for _, p := range points {
			x := p.w * terms[used[i]](p.n) / p.y
			for j := range used {
				matrix[i][j] += x * terms[used[j]](p.n) / p.y
			}
			matrix[i][k] += x
		}
	}
	solution, ok := eliminate(matrix)
	if !ok {
		return nil, false
	}
	coefficients := make([]float64, len(terms))
	for i, c := range solution {
		if c < 0 {
			return nil, false
		}
		coefficients[used[i]] = c
	}
	return coefficients, true
}

// eliminate solves a system by Gauss's elimination with pivoting.
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

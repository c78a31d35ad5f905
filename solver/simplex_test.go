package solver

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func optimumOf(t *testing.T, s *simplex) (x []float64, bound float64) {
	t.Helper()
	row, _, left := s.solve(1000)
	require.Equal(t, -1, row)
	require.Positive(t, left)
	x = make([]float64, s.columns)
	s.valuesOf(x)
	prices, reduced := make([]float64, s.rows), make([]float64, s.columns)
	s.prices(prices, -1, 0)
	return x, s.bound(prices, reduced)
}

// min x + 2y, x + y >= 3, x <= 2, y <= 4: two of x and one of y.
func TestTheSimplexFindsTheOptimumThatIsKnown(t *testing.T) {
	p := &program{right: []float64{-3}, cost: []float64{1, 2}, entries: [][]coefficient{{{0, -1}}, {{0, -1}}}}
	s := newSimplex(p, []float64{0, 0}, []float64{2, 4})
	x, bound := optimumOf(t, s)
	require.InDeltaSlice(t, []float64{2, 1}, x, 1e-9)
	require.InDelta(t, 4, bound, 1e-9)

	var copied simplex
	copied.copyFrom(s)
	copied.restrict(0, 0, 1)
	x, bound = optimumOf(t, &copied)
	require.InDeltaSlice(t, []float64{1, 2}, x, 1e-9)
	require.InDelta(t, 5, bound, 1e-9)

	s.restrict(1, 0, 0)
	row, above, _ := s.solve(1000)
	require.NotEqual(t, -1, row, "two of x alone do not serve three")
	require.Greater(t, bounded(s, row, above, 1e6), 1e5)
}

// bounded returns the bound with a multiple of the row that shows that there is no solution.
func bounded(s *simplex, row int, above bool, multiple float64) float64 {
	if above {
		multiple = -multiple
	}
	prices, reduced := make([]float64, s.rows), make([]float64, s.columns)
	s.prices(prices, row, multiple)
	return s.bound(prices, reduced)
}

// Whatever the program and the bounds of its columns, no solution costs less than the bound: after
// any number of pivots, at the optimum, and if there is no solution.
func TestNoSolutionCostsLessThanTheBoundOfTheSimplex(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 8))
	optima, infeasible, tight := 0, 0, 0
	for range 3000 {
		rows, columns := 1+random.IntN(6), 1+random.IntN(8)
		p := &program{}
		for range rows {
			p.right = append(p.right, float64(random.IntN(24)-8))
		}
		lower, upper := make([]float64, columns), make([]float64, columns)
		for j := range columns {
			p.cost = append(p.cost, float64(random.IntN(6)))
			p.entries = append(p.entries, nil)
			for i := range rows {
				if random.IntN(2) == 0 {
					p.entries[j] = append(p.entries[j], coefficient{int32(i), float64(random.IntN(9) - 4)})
				}
			}
			lower[j] = float64(random.IntN(3))
			upper[j] = lower[j] + float64(random.IntN(4))
		}
		s := newSimplex(p, lower, upper)
		s.solve(random.IntN(4))
		j := random.IntN(columns)
		lower[j] += float64(random.IntN(2))
		upper[j] = max(lower[j], upper[j]-float64(random.IntN(2)))
		s.restrict(j, lower[j], upper[j])
		cheapest := p.cheapest(lower, upper)
		require.LessOrEqual(t, bounded(s, -1, false, 0), cheapest+1e-9)
		row, above, _ := s.solve(1000)
		if row >= 0 {
			infeasible++
			require.True(t, math.IsInf(cheapest, 1), "a program with a solution")
			require.Greater(t, bounded(s, row, above, 1e9), 1e4)
			continue
		}
		x := make([]float64, columns)
		s.valuesOf(x)
		p.requireFits(t, x, lower, upper)
		found := bounded(s, -1, false, 0)
		require.LessOrEqual(t, found, cheapest+1e-9)
		require.InDelta(t, p.costOf(x), found, 1e-9, "the optimum has the cost of its bound")
		if optima++; cheapest-found < 1e-9 {
			tight++
		}
	}
	require.Greater(t, optima, 1000)
	require.Greater(t, infeasible, 300)
	require.Greater(t, tight, 300, "many optima are whole numbers")
}

func (p *program) costOf(x []float64) (cost float64) {
	for j := range x {
		cost += p.cost[j] * x[j]
	}
	return cost
}

func (p *program) requireFits(t *testing.T, x, lower, upper []float64) {
	t.Helper()
	left := append([]float64(nil), p.right...)
	for j := range x {
		require.GreaterOrEqual(t, x[j], lower[j]-1e-8)
		require.LessOrEqual(t, x[j], upper[j]+1e-8)
		for _, e := range p.entries[j] {
			left[e.row] -= e.amount * x[j]
		}
	}
	for _, slack := range left {
		require.GreaterOrEqual(t, slack, -1e-7)
	}
}

// cheapest is the cost of the cheapest solution of whole numbers, by enumeration.
func (p *program) cheapest(lower, upper []float64) float64 {
	least := math.Inf(1)
	x := append([]float64(nil), lower...)
	for {
		left, fits := append([]float64(nil), p.right...), true
		for j := range x {
			for _, e := range p.entries[j] {
				left[e.row] -= e.amount * x[j]
			}
		}
		for _, slack := range left {
			fits = fits && slack >= 0
		}
		if fits {
			least = min(least, p.costOf(x))
		}
		j := 0
		for ; j < len(x) && x[j] >= upper[j]; j++ {
			x[j] = lower[j]
		}
		if j == len(x) {
			return least
		}
		x[j]++
	}
}

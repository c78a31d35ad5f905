package solver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// optimumOf returns the solution and its bound.
func optimumOf(t *testing.T, s *simplex) (x []float64, bound float64) {
	t.Helper()
	if row, _, left := s.solve(1000); row >= 0 || left == 0 {
		t.Fatalf("row %d has no solution, %d pivots are left", row, left)
	}
	x = make([]float64, s.columns)
	s.valuesOf(x)
	return x, bounded(s, -1, false, 0)
}

// min x + 2y, x + y >= 3, x <= 2, y <= 4: two of x and one of y.
func TestTheSimplexFindsTheOptimumThatIsKnown(t *testing.T) {
	p := &program{right: []float64{-3}, cost: []float64{1, 2}, entries: [][]coefficient{{{0, -1}}, {{0, -1}}}}
	s := newSimplex(p, []float64{0, 0}, []float64{2, 4})
	if x, bound := optimumOf(t, s); !slices.Equal(x, []float64{2, 1}) || math.Abs(bound-4) > 1e-9 {
		t.Errorf("%v, which costs %v", x, bound)
	}
	var copied simplex
	copied.copyFrom(s)
	copied.restrict(0, 0, 1)
	if x, bound := optimumOf(t, &copied); !slices.Equal(x, []float64{1, 2}) || math.Abs(bound-5) > 1e-9 {
		t.Errorf("with one of x, %v, which costs %v", x, bound)
	}
	s.restrict(1, 0, 0)
	if row, above, _ := s.solve(1000); row < 0 || bounded(s, row, above, 1e6) < 1e5 {
		t.Errorf("two of x alone do not serve three, row %d", row)
	}
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
	optima, infeasible, whole := 0, 0, 0
	for i := range 3000 {
		rows, columns := 1+random.IntN(6), 1+random.IntN(8)
		p := &program{}
		for range rows {
			p.right = append(p.right, float64(random.IntN(24)-8))
		}
		lower, upper := make([]float64, columns), make([]float64, columns)
		for j := range columns {
			p.cost = append(p.cost, float64(random.IntN(6)))
			p.entries = append(p.entries, nil)
			for k := range rows {
				if random.IntN(2) == 0 {
					p.entries[j] = append(p.entries[j], coefficient{int32(k), float64(random.IntN(9) - 4)})
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
		if bound := bounded(s, -1, false, 0); bound > cheapest+1e-9 {
			t.Fatalf("program %d: %v, and the bound is %v", i, cheapest, bound)
		}
		row, above, _ := s.solve(1000)
		if row >= 0 {
			infeasible++
			if bound := bounded(s, row, above, 1e9); !math.IsInf(cheapest, 1) || bound < 1e4 {
				t.Fatalf("program %d: row %d is said to have no solution, %v, and the bound is %v", i, row, cheapest, bound)
			}
			continue
		}
		x := make([]float64, columns)
		s.valuesOf(x)
		bound := bounded(s, -1, false, 0)
		if !p.fits(x, lower, upper) || bound > cheapest+1e-9 || math.Abs(p.costOf(x)-bound) > 1e-9 {
			t.Fatalf("program %d: %v costs %v, the bound is %v, and whole numbers cost %v", i, x, p.costOf(x), bound, cheapest)
		}
		if optima++; cheapest-bound < 1e-9 {
			whole++
		}
	}
	if optima < 1000 || infeasible < 300 || whole < 300 {
		t.Errorf("%d optima, %d of whole numbers, and %d programs without a solution", optima, whole, infeasible)
	}
}

func (p *program) costOf(x []float64) (cost float64) {
	for j := range x {
		cost += p.cost[j] * x[j]
	}
	return cost
}

// fits reports whether a solution is within the bounds and keeps the rows.
func (p *program) fits(x, lower, upper []float64) bool {
	left := slices.Clone(p.right)
	for j := range x {
		if x[j] < lower[j]-1e-8 || x[j] > upper[j]+1e-8 {
			return false
		}
		for _, e := range p.entries[j] {
			left[e.row] -= e.amount * x[j]
		}
	}
	return !slices.ContainsFunc(left, func(slack float64) bool { return slack < -1e-7 })
}

// cheapest is the cost of the cheapest solution of whole numbers, by enumeration.
func (p *program) cheapest(lower, upper []float64) float64 {
	least := math.Inf(1)
	for x := slices.Clone(lower); ; {
		if p.fits(x, lower, upper) {
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

package fit

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nonNegative returns the x >= 0 that minimises |Ax - b|, by the active sets of Lawson and Hanson
// (Solving Least Squares Problems, 1974, chapter 23). A column that is a linear combination of
// those in use stays at zero.
func nonNegative(a *mat.Dense, b []float64) []float64 {
	rows, columns := a.Dims()
	p := activeSet{a: a, b: mat.NewVecDense(rows, b), x: make([]float64, columns)}
	p.used, p.barred = make([]bool, columns), make([]bool, columns)
	// It ends far earlier; the bound protects from cycles by rounding errors.
	for range 10 * columns {
		j, ok := p.steepest()
		if !ok {
			break
		}
		p.enter(j)
	}
	return p.x
}

// activeSet is the state between two steps: the columns in use and the best x over them.
type activeSet struct {
	a      *mat.Dense
	b      *mat.VecDense
	x      []float64
	used   []bool
	barred []bool // gained nothing when they entered last; free again after the next step
}

// gradientTolerance is the share of |a_j||b| below which a column's gradient counts as zero.
const gradientTolerance = 1e-12

// conditionLimit is the condition number of the columns in use above which the last one counts as a
// linear combination of the others.
const conditionLimit = 1e12

// steepest returns the unused column along which the error falls fastest; false if there is none.
func (p *activeSet) steepest() (int, bool) {
	var residual mat.VecDense
	residual.MulVec(p.a, mat.NewVecDense(len(p.x), p.x))
	residual.SubVec(p.b, &residual)
	best, most := -1, 0.0
	for j := range p.x {
		if p.used[j] || p.barred[j] {
			continue
		}
		column := p.a.ColView(j)
		scale := mat.Norm(column, 2) * mat.Norm(p.b, 2)
		if gradient := mat.Dot(column, &residual); gradient > gradientTolerance*scale && gradient > most {
			best, most = j, gradient
		}
	}
	return best, best >= 0
}

// enter takes column j into use, and takes columns out of use that would become negative.
func (p *activeSet) enter(j int) {
	p.used[j] = true
	z, ok := p.solve()
	if !ok || z[j] <= 0 {
		p.used[j], p.barred[j] = false, true
		return
	}
	clear(p.barred)
	for {
		step, blocked := p.step(z)
		for i := range p.x {
			if p.used[i] {
				p.x[i] += step * (z[i] - p.x[i])
			}
		}
		if !blocked {
			return
		}
		p.release(z)
		if z, ok = p.solve(); !ok {
			return
		}
	}
}

// step returns the step of x towards z, in [0, 1], and whether a column blocks it.
func (p *activeSet) step(z []float64) (float64, bool) {
	step, blocked := 1.0, false
	for i := range p.x {
		if p.used[i] && z[i] <= 0 {
			blocked = true
			if p.x[i] == 0 {
				return 0, true
			}
			step = min(step, p.x[i]/(p.x[i]-z[i]))
		}
	}
	return step, blocked
}

// release takes the columns out of use that reach zero on the way to z.
func (p *activeSet) release(z []float64) {
	least := -1
	for i := range p.x {
		if p.used[i] && z[i] <= 0 && (least < 0 || p.x[i] < p.x[least]) {
			least = i
		}
	}
	for i := range p.x {
		if p.used[i] && z[i] <= 0 && p.x[i] <= p.x[least] {
			p.used[i], p.x[i] = false, 0
		}
	}
}

// solve returns the least-squares solution over the columns in use, zero for the others; false if
// one is a linear combination of the others.
func (p *activeSet) solve() ([]float64, bool) {
	rows, columns := p.a.Dims()
	var in []int
	for i := range columns {
		if p.used[i] {
			in = append(in, i)
		}
	}
	z := make([]float64, columns)
	if len(in) == 0 {
		return z, true
	}
	if len(in) > rows {
		return nil, false
	}
	part := mat.NewDense(rows, len(in), nil)
	for k, i := range in {
		part.SetCol(k, mat.Col(nil, i, p.a))
	}
	var qr mat.QR
	qr.Factorize(part)
	if condition := qr.Cond(); math.IsNaN(condition) || condition > conditionLimit {
		return nil, false
	}
	var solution mat.VecDense
	if err := qr.SolveVecTo(&solution, false, p.b); err != nil {
		return nil, false
	}
	for k, i := range in {
		z[i] = solution.AtVec(k)
	}
	return z, true
}

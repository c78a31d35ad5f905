package fit

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestNonNegativeIsTheBestOfAllSubsets(t *testing.T) {
	const columns = 5
	random := rand.New(rand.NewPCG(1, 2))
	for trial := range 2000 {
		rows := 1 + random.IntN(12)
		a := mat.NewDense(rows, columns, nil)
		b := make([]float64, rows)
		for i := range rows {
			for j := range columns {
				a.Set(i, j, random.NormFloat64()*math.Pow(10, float64(j-2)))
			}
			b[i] = random.NormFloat64()
		}
		if trial%5 == 0 { // two equal columns
			a.SetCol(3, mat.Col(nil, 1, a))
		}
		x := nonNegative(a, b)
		for j, value := range x {
			if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
				t.Fatalf("trial %d: x[%d] = %v", trial, j, value)
			}
		}
		got, want := wrong(a, b, x), leastOverSubsets(a, b)
		if math.Abs(got-want) > 1e-9*(1+want) {
			t.Fatalf("trial %d, %d rows: error %v, the best subset has %v", trial, rows, got, want)
		}
	}
}

func TestNonNegativeOfNothingIsZero(t *testing.T) {
	for name, a := range map[string]*mat.Dense{"no columns of use": mat.NewDense(2, 3, nil), "columns that point away": mat.NewDense(2, 1, []float64{-1, -2})} {
		for _, x := range nonNegative(a, []float64{1, 1}) {
			if x != 0 {
				t.Errorf("%s: %v", name, x)
			}
		}
	}
}

// leastOverSubsets is the reference: the least error of ordinary least squares over every subset of
// the columns, by the pseudo-inverse, of those without negative coefficients.
func leastOverSubsets(a *mat.Dense, b []float64) float64 {
	rows, columns := a.Dims()
	least := wrong(a, b, make([]float64, columns))
	for subset := 1; subset < 1<<columns; subset++ {
		var in []int
		for j := range columns {
			if subset&(1<<j) != 0 {
				in = append(in, j)
			}
		}
		part := mat.NewDense(rows, len(in), nil)
		for k, j := range in {
			part.SetCol(k, mat.Col(nil, j, a))
		}
		var svd mat.SVD
		if !svd.Factorize(part, mat.SVDThin) {
			continue
		}
		rank := svd.Rank(1e-12)
		if rank < len(in) { // another subset spans the same
			continue
		}
		var z mat.VecDense
		svd.SolveVecTo(&z, mat.NewVecDense(rows, b), rank)
		x := make([]float64, columns)
		feasible := true
		for k, j := range in {
			x[j] = z.AtVec(k)
			feasible = feasible && x[j] >= 0
		}
		if feasible {
			least = min(least, wrong(a, b, x))
		}
	}
	return least
}

// wrong is |Ax - b|.
func wrong(a *mat.Dense, b, x []float64) float64 {
	var residual mat.VecDense
	residual.MulVec(a, mat.NewVecDense(len(x), x))
	residual.SubVec(&residual, mat.NewVecDense(len(b), b))
	return mat.Norm(&residual, 2)
}

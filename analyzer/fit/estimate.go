package fit

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/wva-project/wva/fleet"
)

// ttftWeight is the weight of a relative error of TTFT against one of TPOT: the TTFT of a benchmark
// depends on the arrivals of its requests, which only two of the parameters describe.
const ttftWeight = 0.3

// priorWeight is the weight of typical proportions of parameters against the rows. It changes a
// parameter that the rows show by less than one run of the benchmark differs from the next. If the
// rows do not distinguish parameters, each gets its typical part.
const priorWeight = 0.01

// typical returns the parameters of an 8B model on an H100. Only their proportions count.
func typical() vector {
	return vector{alpha: 6, beta: 0.034, gamma: 0.042, prefill: 0.013, prefillSquared: 0.83, experts: 6, lead: 8}
}

// waves returns the values to try for a form's wave: none, and 1/2 over the waves of a benchmark.
func waves() []float64 {
	return []float64{0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5}
}

// estimate returns the form that fits the rows of a model of some sparsity best. A dense model has
// no term for experts.
func estimate(rows []Row, sparsity float64) form {
	var best form
	least := math.Inf(1)
	for _, wave := range waves() {
		problem := system(rows, wave, sparsity)
		f, wrong := problem.solve()
		if wrong < least {
			best, least = f, wrong
		}
	}
	return best
}

// equations are a least-squares problem in relative errors.
type equations struct {
	lines []vector  // left sides: a line times the parameters approximates its right side
	right []float64 // weights

	wave, sparsity float64
	// fastest is the least time between tokens of all requests of a batch together, in ms.
	fastest float64
}

func system(rows []Row, wave, sparsity float64) equations {
	e := equations{wave: wave, sparsity: sparsity, fastest: math.Inf(1)}
	for _, r := range rows {
		e.fastest = min(e.fastest, r.TPOT/r.batch())
		e.add(iteration(r, r.batch(), sparsity), r.TPOT, 1)
		e.add(first(r, r.TPOT, wave), r.TTFT, ttftWeight)
	}
	return e
}

// add adds a line: the left side times the parameters approximates the observed time.
func (e *equations) add(left vector, observed, weight float64) {
	for i := range left {
		left[i] *= weight / observed
	}
	e.lines = append(e.lines, left)
	e.right = append(e.right, weight)
}

// norms returns the length of each column; 1 for one of zeros.
func (e *equations) norms() vector {
	var norms vector
	for _, line := range e.lines {
		for i, x := range line {
			norms[i] += x * x
		}
	}
	for i := range norms {
		if norms[i] = math.Sqrt(norms[i]); norms[i] == 0 {
			norms[i] = 1
		}
	}
	return norms
}

// leastDecode is the least time of the requests in decode of a model with experts, as a part of the
// iteration with the largest batch of the rows. Rows tell less than that, and a batch that is free
// could grow without end.
const leastDecode = 0.05

// floors returns the least value of each parameter.
func (e *equations) floors() vector {
	floors := vector{alpha: fleet.CostFigures()[alpha].Lowest}
	if e.sparsity > dense {
		floors[beta] = leastDecode * e.fastest
	}
	return floors
}

// solve returns the parameters and the sum of the squared errors.
func (e *equations) solve() (form, float64) {
	norms, typical := e.norms(), typical()
	floors := e.floors()
	a := mat.NewDense(len(e.lines)+parameters, parameters, nil)
	b := make([]float64, len(e.lines)+parameters)
	for i, line := range e.lines {
		for j, x := range line {
			a.Set(i, j, x/norms[j])
		}
		b[i] = e.right[i] - floors.dot(line)
	}
	for j := range parameters {
		a.Set(len(e.lines)+j, j, priorWeight*typical[alpha]*norms[alpha]/(typical[j]*norms[j]))
	}
	f := form{wave: e.wave, sparsity: e.sparsity}
	for j, x := range nonNegative(a, b) {
		f.x[j] = floors[j] + x/norms[j]
	}
	wrong := 0.0
	for i, line := range e.lines {
		wrong += square(f.x.dot(line) - e.right[i])
	}
	return f, wrong
}

func square(x float64) float64 { return x * x }

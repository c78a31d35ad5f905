package fit

import (
	"math"
	"slices"

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

// estimate returns the form that fits the rows best: the saturating one, or the straight one, which
// has no experts.
func estimate(rows []Row, saturating bool) form {
	var best form
	least := math.Inf(1)
	for _, wave := range waves() {
		problem := system(rows, wave, saturating)
		f, wrong := problem.solve()
		if wrong < least {
			best, least = f, wrong
		}
	}
	return best
}

// straight returns the form without experts that is nearest to a saturating one over the range of
// the rows. Estimated from the rows themselves it would depend on their distribution: a steep line
// if most are of small batches, a flat one otherwise.
func straight(rows []Row, saturating form) form {
	if saturating.x[experts] == 0 {
		return saturating
	}
	return estimate(between(rows, saturating), false)
}

// between returns the predictions of a form for every pair of lengths in the rows, at doublings of
// concurrency from the least to the most.
func between(rows []Row, f form) []Row {
	least, most := math.Inf(1), 0.0
	var lengths []cell
	for _, r := range rows {
		least, most = min(least, r.Concurrency), max(most, r.Concurrency)
		if c := (cell{prompt: r.Prompt, output: r.Output}); !slices.Contains(lengths, c) {
			lengths = append(lengths, c)
		}
	}
	var made []Row
	for _, c := range lengths {
		for n := least; n <= most; n *= 2 {
			r := Row{Concurrency: n, Prompt: c.prompt, Output: c.output}
			r.TTFT, r.TPOT = f.predict(r)
			made = append(made, r)
		}
	}
	return made
}

// equations are a least-squares problem in relative errors.
type equations struct {
	lines []vector  // left sides: a line times the parameters approximates its right side
	right []float64 // weights
	wave  float64
}

func system(rows []Row, wave float64, saturating bool) equations {
	e := equations{wave: wave}
	for _, r := range rows {
		e.add(iteration(r, r.batch()), r.TPOT, 1)
		e.add(first(r, r.TPOT, wave), r.TTFT, ttftWeight)
	}
	if !saturating {
		for i := range e.lines {
			e.lines[i][experts] = 0
		}
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

// solve returns the parameters and the sum of the squared errors.
func (e *equations) solve() (form, float64) {
	norms, typical := e.norms(), typical()
	floor := fleet.CostFigures()[alpha].Lowest
	a := mat.NewDense(len(e.lines)+parameters, parameters, nil)
	b := make([]float64, len(e.lines)+parameters)
	for i, line := range e.lines {
		for j, x := range line {
			a.Set(i, j, x/norms[j])
		}
		b[i] = e.right[i] - floor*line[alpha]
	}
	for j := range parameters {
		a.Set(len(e.lines)+j, j, priorWeight*typical[alpha]*norms[alpha]/(typical[j]*norms[j]))
	}
	f := form{wave: e.wave}
	for j, x := range nonNegative(a, b) {
		f.x[j] = x / norms[j]
	}
	f.x[alpha] += floor
	wrong := 0.0
	for i, line := range e.lines {
		wrong += square(f.x.dot(line) - e.right[i])
	}
	return f, wrong
}

func square(x float64) float64 { return x * x }

package fit

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/wva-project/wva/fleet"
)

// ttftWeight is how much a relative error of a TTFT counts beside one of a TPOT: the TTFT of a benchmark depends on how its
// requests come, which only two of the parameters describe.
const ttftWeight = 0.3

// leaning is the weight of what engines usually cost, beside the rows. What rows show moves by less than it would from one run of
// the benchmark to the next; among parameters that they do not tell apart it gives each the part that it has elsewhere.
const leaning = 0.01

// usual returns how large parameters are in an 8B model on an H100. Their proportions count alone.
func usual() vector {
	return vector{alpha: 6, beta: 0.034, gamma: 0.042, prefill: 0.013, prefillSquared: 0.83, experts: 6, lead: 8}
}

// waves are the values that are tried for a form's wave: none, and 1/2 over the waves of a benchmark.
func waves() []float64 {
	return []float64{0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5}
}

// estimate returns the form that fits the rows best: the saturating one, or the straight one, which has no experts.
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

// straight returns the form without experts that is nearest to a saturating one over all that the rows span. Taken from the rows
// themselves it would follow where these happen to lie: a steep line where most are of small batches, a flat one otherwise.
func straight(rows []Row, saturating form) form {
	if saturating.x[experts] == 0 {
		return saturating
	}
	return estimate(between(rows, saturating), false)
}

// between returns what a form says for every pair of lengths in the rows, at doublings of concurrency from the least to the most.
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
	lines []vector // each of which times the parameters shall be its weight
	right []float64
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

// add adds a line: the left side times the parameters shall be the observed time.
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
	norms, usual := e.norms(), usual()
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
		a.Set(len(e.lines)+j, j, leaning*usual[alpha]*norms[alpha]/(usual[j]*norms[j]))
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

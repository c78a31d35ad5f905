package fit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Warning is about a parameter that the rows do not show.
type Warning struct {
	Parameter string `json:"parameter"` // as the configuration names it
	Problem   string `json:"problem"`
	Remedy    string `json:"remedy"` // which rows to measure
}

func (w Warning) String() string { return fmt.Sprintf("%s: %s; %s", w.Parameter, w.Problem, w.Remedy) }

// figure holds the texts about a parameter.
type figure struct {
	name   string
	remedy string
}

// figures are those of fleet.EngineCost, in the order of the parameters.
func figures() [lead]figure {
	return [lead]figure{
		alpha:          {"alpha", "measure at concurrency 1 to 4 too"},
		beta:           {"beta", "measure the same lengths at several concurrencies, from 4 to 128 and more, with prompts of about 100 tokens among them"},
		gamma:          {"gamma", "measure long prompts, 8,000 tokens and more, with outputs of 1,000 and more at concurrency 32 and more"},
		prefill:        {"prefill", "measure short outputs, of about 100 tokens, at concurrency 32 and more"},
		prefillSquared: {"prefillSquared", "measure prompts of three lengths, such as 128, 1,024 and 8,192, with outputs of about 100 tokens"},
		experts:        {"experts", "measure at concurrency 1, 4 and 16, and at several times the sparsity of the model"},
	}
}

// Limits on the standard error of a parameter, as a share of TPOT.
const (
	unsureShare  = 0.10 // in the rows; above it they do not show a parameter
	pinnedShare  = 0.03 // in the rows; above it a parameter at its lower bound may well be larger
	distantShare = 0.25 // in the distant row; above it the rows are too short to show a parameter
	leastScatter = 0.02 // relative; benchmarks do not repeat better than that
)

// distant is a workload of long prompts that most engines have to serve.
func distant() Row { return Row{Concurrency: 64, Prompt: 8192, Output: 256} }

// warnings names the parameters that rows do not show, among them those at their lower bound.
func warnings(rows []Row, f form) []Warning {
	problem := system(rows, f.wave, f.sparsity)
	errs, floors := problem.standardErrors(f), problem.floors()
	far := distant()
	far.TTFT, far.TPOT = f.predict(far)
	worth := iteration(far, far.batch(), f.sparsity)
	var found []Warning
	for i, figure := range figures() {
		if i == experts && f.sparsity <= dense {
			continue
		}
		w := Warning{Parameter: figure.name, Remedy: remedy(i, errs[i].partner)}
		lowest := floors[i]
		beyond := errs[i].value * worth[i] / far.TPOT
		switch {
		case errs[i].share > unsureShare:
			w.Problem = "the rows do not distinguish it from " + nameOf(errs[i].partner) + constant(rows, i)
		case f.x[i] <= lowest && errs[i].share > pinnedShare:
			w.Problem = fmt.Sprintf("it is estimated as %.3g, its lower bound, but the rows do not show it%s", lowest, constant(rows, i))
		case beyond > distantShare:
			w.Problem = fmt.Sprintf("the lengths in the rows are too short to show it: for prompts of %v tokens its error is %.0f %% of TPOT", far.Prompt, 100*beyond)
		default:
			continue
		}
		found = append(found, w)
	}
	return found
}

// remedy names the rows that would distinguish a parameter from its partner.
func remedy(parameter, partner int) string {
	if parameter == prefill && partner == prefillSquared {
		parameter = partner
	}
	return figures()[parameter].remedy
}

func nameOf(parameter int) string {
	if parameter < lead {
		return figures()[parameter].name
	}
	return "the benchmark's waiting"
}

// constant names a quantity that is the same in all rows and thereby hides a parameter.
func constant(rows []Row, parameter int) string {
	same := func(of func(Row) float64) bool {
		for _, r := range rows {
			if of(r) != of(rows[0]) {
				return false
			}
		}
		return true
	}
	prompts := same(func(r Row) float64 { return r.Prompt })
	outputs := same(func(r Row) float64 { return r.Output })
	switch {
	case len(rows) == 1:
		return ", since there is only one row"
	case (parameter <= beta || parameter == experts) && same(func(r Row) float64 { return r.Concurrency }):
		return fmt.Sprintf(", since all have concurrency %v", rows[0].Concurrency)
	case parameter != alpha && prompts && outputs:
		return fmt.Sprintf(", since all have isl %v and osl %v", rows[0].Prompt, rows[0].Output)
	case parameter != alpha && prompts:
		return fmt.Sprintf(", since all have isl %v", rows[0].Prompt)
	}
	return ""
}

// standardError is the uncertainty of a parameter.
type standardError struct {
	value   float64
	share   float64 // its effect in the rows, as a share of their times
	partner int     // the parameter that is hardest to distinguish from this one
}

// standardErrors returns those of the parameters of fleet.EngineCost.
func (e *equations) standardErrors(f form) [lead]standardError {
	// Each parameter has its own number as index here.
	used := []int{alpha, beta, gamma, prefill, prefillSquared, experts, lead}
	norms := e.norms()
	correlation := mat.NewSymDense(len(used), nil)
	for a, i := range used {
		for b := a; b < len(used); b++ {
			sum := 0.0
			for _, line := range e.lines {
				sum += line[i] / norms[i] * line[used[b]] / norms[used[b]]
			}
			correlation.SetSym(a, b, sum)
		}
		// Keeps it invertible if two columns are equal, or one is not in use.
		correlation.SetSym(a, a, 1+1e-9)
	}
	var errs [lead]standardError
	var factor mat.Cholesky
	var inverse mat.SymDense
	if !factor.Factorize(correlation) || factor.InverseTo(&inverse) != nil && math.IsInf(factor.Cond(), 1) {
		for i := range errs {
			errs[i] = standardError{value: math.Inf(1), share: math.Inf(1), partner: lead}
		}
		return errs
	}
	scatter := e.scatter(f)
	for i := range errs {
		errs[i].value = scatter * math.Sqrt(inverse.At(i, i)) / norms[i]
		errs[i].share = scatter * math.Sqrt(inverse.At(i, i)/float64(len(e.lines)/2))
		closest := 0.0
		for b, j := range used {
			if partial := math.Abs(inverse.At(i, b)) / math.Sqrt(inverse.At(i, i)*inverse.At(b, b)); b != i && partial > closest {
				closest, errs[i].partner = partial, j
			}
		}
	}
	return errs
}

// scatter is the standard deviation of the relative errors of TPOT, from its lines: every second
// one.
func (e *equations) scatter(f form) float64 {
	sum := 0.0
	for i := 0; i < len(e.lines); i += 2 {
		sum += square(f.x.dot(e.lines[i]) - e.right[i])
	}
	return max(leastScatter, math.Sqrt(sum/max(1, float64(len(e.lines)/2-5))))
}

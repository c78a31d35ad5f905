package fit

import "github.com/wva-project/wva/fleet"

// The parameters that are estimated together.
const (
	alpha = iota
	beta
	gamma
	prefill
	prefillSquared
	experts    // the term that saturates as the batch touches more experts, ms
	lead       // iterations that a request waits before its prompt
	parameters // their number
)

type vector [parameters]float64

func (v vector) dot(w vector) float64 {
	sum := 0.0
	for i := range v {
		sum += v[i] * w[i]
	}
	return sum
}

// work returns the coefficients of a prompt's work.
func work(prompt float64) vector {
	return vector{prefill: prompt, prefillSquared: prompt * prompt / 1e6}
}

// iteration returns the coefficients of the time of an iteration in which n requests decode, of a
// model of some sparsity.
func iteration(r Row, n, sparsity float64) vector {
	v := vector{alpha: 1, beta: n, gamma: n * (r.Prompt + r.Output/2) / 1000}
	if sparsity > dense {
		v[experts] = fleet.EngineCost{Sparsity: sparsity}.Touched(n)
	}
	perIteration := n / (r.Output - 1)
	for i, x := range work(r.Prompt) {
		v[i] += perIteration * x
	}
	return v
}

// first returns the coefficients of the time to the first token, if an iteration takes time ms and
// a share wave of the clients' prompts go before.
func first(r Row, time, wave float64) vector {
	v := vector{lead: time}
	for i, x := range work(r.Prompt) {
		v[i] += (1 + wave*r.Concurrency) * x
	}
	return v
}

// form holds the parameters of T(n) and F.
type form struct {
	x vector
	// wave is the part of a prompt's work by which each client delays the first token of others.
	wave     float64
	sparsity float64
}

// predict returns the TTFT and the TPOT of a row from its lengths and concurrency alone. The batch
// in decode is the root of Little's law: the number of requests in decode is a concave function of
// the batch, above it at zero and below it at the concurrency.
func (f form) predict(r Row) (ttft, tpot float64) {
	low, high := 0.0, r.Concurrency
	for range 60 {
		n := (low + high) / 2
		r.TPOT = f.x.dot(iteration(r, n, f.sparsity))
		r.TTFT = f.x.dot(first(r, r.TPOT, f.wave))
		if r.batch() > n {
			low = n
		} else {
			high = n
		}
	}
	return r.TTFT, r.TPOT
}

// cost returns the parameters of fleet.EngineCost.
func (f form) cost() fleet.EngineCost {
	c := fleet.EngineCost{Alpha: f.x[alpha], Beta: f.x[beta], Gamma: f.x[gamma], Prefill: f.x[prefill], PrefillSquared: f.x[prefillSquared]}
	if f.x[experts] > 0 {
		c.Experts, c.Sparsity = f.x[experts], f.sparsity
	}
	return c
}

package analyzer

import (
	"math"

	"github.com/wva-project/wva/analyzer/queueing"
)

// Pool is how the capacity of a replica grows with the number of replicas that share the model's
// requests. A gateway that sends each request to the replica with the least load gives each of n
// replicas arrivals that deviate less: their index of dispersion is 1/n of all arrivals'. So a pool
// needs less headroom than as many single replicas. The mean capacity is that of a replica in a
// pool without end. The zero value does not depend on the number.
type Pool struct {
	// Alone is the capacity of a single replica over the mean capacity, in (0, 1]. That of each of
	// n replicas is Alone^(n^-Exponent) of it.
	Alone, Exponent float64
}

// At returns the capacity of each of n replicas, n >= 1, over the mean capacity.
func (p Pool) At(n float64) float64 {
	if !p.matters() {
		return 1
	}
	return math.Pow(p.Alone, math.Pow(max(1, n), -p.Exponent))
}

// matters reports whether the capacity depends on the number of replicas.
func (p Pool) matters() bool { return p.Alone > 0 && p.Alone < 1 }

// Required returns the mean capacity that serves a demand within the percentile. Both are in units
// of the mean capacity of a replica, so that the number of replicas is the result rounded up.
func (p Pool) Required(demand float64) float64 {
	if alone := p.At(1); demand <= alone || !p.matters() {
		return demand / alone
	}
	// The logarithm of what n replicas serve is a concave function of ln n, so that Newton's method
	// rises to the root.
	least, most := math.Log(p.Alone), math.Log(demand)
	n := max(0, most)
	for range 100 {
		kept := least * math.Exp(-p.Exponent*n)
		step := (most - n - kept) / (1 - p.Exponent*kept)
		if n += step; step < 1e-13 {
			break
		}
	}
	return math.Exp(n)
}

// shared is the answer of the queueing model for one variant in a pool.
type shared struct {
	answered         // for as many replicas as the demand needs
	pool     Pool    // how the rate depends on their number
	mean     float64 // requests per second of a replica in a pool without end
}

// share asks for the rate of a replica among as many equal ones as the demand needs. The mean, the
// capacity of a single replica, and that in a pool of about this size tell how it grows with their
// number; between them the logarithm of the capacity is a power of the number. If a demand needs
// many replicas, the capacity of a single one is derived.
func (m Model) share(q queueing.Question, o Options) (s shared, err error) {
	known := o.Memo.answersTo(q)
	ask := func(part float64, simulations *Simulations) (a answered) {
		if err == nil {
			q.Dispersion = o.arrivals.dispersionOf(part)
			a, err = o.Memo.maxRate(q, known, simulations)
		}
		return a
	}
	s.mean = ask(0, nil).Rate
	total := m.Rate.Or(0)
	if total >= manyReplicas*s.mean && s.mean > 0 {
		replicas := steps(total/s.mean, coarseDispersion)
		s.answered = ask(1/replicas, o.Simulations)
		s.mean = max(s.mean, s.Rate)
		s.pool = manyPool(s.Rate, s.mean, replicas)
	} else {
		one, simulations := ask(1, nil), o.Simulations
		single := total <= one.Rate
		if single {
			one, simulations = ask(1, simulations), nil
		}
		s.mean = max(s.mean, one.Rate)
		guess := Pool{Alone: max(leastAlone, one.Rate/s.mean), Exponent: usualExponent}
		replicas := steps(max(fewReplicas, guess.Required(total/s.mean)), coarseDispersion)
		several := ask(1/replicas, simulations)
		if s.answered = several; single {
			s.answered = one
		}
		s.mean = max(s.mean, several.Rate)
		s.pool = newPool(one.Rate, several.Rate, s.mean, replicas)
	}
	if s.mean > 0 && s.Rate > 0 {
		s.Rate = s.mean * s.pool.At(s.pool.Required(total/s.mean))
	}
	return s, err
}

// atMost limits the mean rate to the most that a replica serves at any latency, and returns the
// limit. The rate of a single replica stays, if it is lower.
func (s *shared) atMost(rate float64) float64 {
	if rate < s.mean {
		s.pool.Alone = min(1, s.pool.Alone*s.mean/rate)
		s.mean = rate
	}
	return rate
}

const (
	// fewReplicas is the smallest pool that tells how the headroom falls with the number.
	fewReplicas = 2
	// usualExponent is the one before it is known.
	usualExponent = 0.8
	mostExponent  = 2
	// manyReplicas is the number from which on the exponent is taken to be 1: on the fleet of
	// BenchmarkDrift and the generated loads it is 0.9 to 1.1, and matters little, since little
	// headroom is left.
	manyReplicas = 4
	// leastAlone is the least capacity of a single replica that counts, over the mean.
	leastAlone = 1e-3
)

// newPool returns the pool with the rates of a single replica, of one of several, and the mean.
func newPool(alone, several, mean, replicas float64) Pool {
	several = max(alone, several)
	if !(mean > 0) || mean-alone <= tiny*mean {
		return Pool{}
	}
	p := Pool{Alone: max(leastAlone, alone/mean), Exponent: mostExponent}
	if several < mean {
		p.Exponent = max(0, min(math.Log(math.Log(p.Alone)/math.Log(several/mean))/math.Log(replicas), mostExponent))
	}
	return p
}

// manyPool returns the pool with the rate of one of many replicas, and the mean: with an exponent
// of 1, unless a single replica has nearly no capacity.
func manyPool(rate, mean, replicas float64) Pool {
	alone := mean * math.Pow(rate/mean, replicas)
	return newPool(max(leastAlone*mean, alone), rate, mean, replicas)
}

// arrivals is how a model's requests clump: their index of dispersion, and how evenly the gateway
// routes them, from 0 to 1.
type arrivals struct{ index, evenness float64 }

func (m Model) arrivals() arrivals {
	return arrivals{index: steps(m.dispersion(), coarseDispersion), evenness: m.evenness()}
}

// dispersionOf returns the index of dispersion of the requests that a replica gets with a part of
// all: between that of a balanced part and that of a random one, by the evenness of the routing.
func (a arrivals) dispersionOf(part float64) float64 {
	balanced := part * a.index * (1 + unevenBursts*(1-part)*(1-part)*(1-1/a.index))
	return max(leastDispersion, a.evenness*balanced+(1-a.evenness)*(1+part*(a.index-1)))
}

// unevenBursts is how much more of a burst a replica gets than its part: a gateway balances
// requests, not the work of their prompts.
const unevenBursts = 0.35

// dispersion returns that of the model's arrivals. A reading deviates by a third: its lower bound
// counts.
func (m Model) dispersion() float64 {
	return max(1, min(m.Dispersion.Or(1)/dispersionDeviation, mostDispersion))
}

const (
	// dispersionDeviation is one standard deviation of a reading of the index of dispersion, a
	// factor.
	dispersionDeviation = 1.35
	// coarseDispersion is the number of steps in a factor of two to which an index of dispersion
	// is rounded, so that its noise does not change the plan.
	coarseDispersion = 2
	// mostDispersion is the highest index of dispersion that is used: beyond it the load is
	// changing, not bursting.
	mostDispersion = 8
	// leastDispersion is that of a part of a pool without end.
	leastDispersion = 1.0 / 64
)

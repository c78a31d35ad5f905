package queueing

import (
	"crypto/sha256"
	"math"
)

const (
	seriesRequests = 20_000 // requests of a series that count
	leastAround    = 500    // least requests before them, and after them
	aroundInFlight = 3      // the same as a multiple of the requests in flight
	fewestSeries   = 3
	mostSeries     = 8
	seriesError    = 0.025 // standard error of the rate above which another series is run
	replayStep     = 0.015 // relative precision of the rate of one series
	firstStride    = 1.06  // first factor on the rate in the search for a bracket
	keptAnswers    = 4096
	keptGaps       = 16

	// mostIterations is the most iterations of a simulation, a few times those of long prompts and
	// outputs: the lengths and limits that it runs with are the numbers of a tenant. Skipping
	// leapsPerIteration iterations takes about the time of one. longestOutput is the longest
	// output, in tokens, that it keeps a table for.
	mostIterations    = 1 << 24
	leapsPerIteration = 16
	longestOutput     = 1 << 20
)

// simulationKey is the complete input of a simulated answer.
type simulationKey struct {
	replica    Replica
	mix        [sha256.Size]byte
	objective  Objective
	dispersion int
}

// Simulate answers by a small simulation that starts at the answer of the formula: several series
// of 20,000 requests, always in the same random orders, until the mean of their rates is known well
// enough. Its answer is a function of the question alone, and is cached. If the simulation would
// take too many iterations, the answer of the formula stays.
func (s *Sizer) Simulate(q Question) (Answer, error) {
	answer, err := s.MaxRate(q)
	if err != nil {
		return Answer{}, err
	}
	key := simulationKey{q.Replica, q.Mix.fingerprint(), q.Objective, dispersionCell(q.Dispersion)}
	s.mu.Lock()
	known, ok := s.simulated[key]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	c := newCell(q, s.burstOf(q.Dispersion))
	c.simulate(s.gapsOf(key.dispersion), s.seed, &answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.simulated == nil || len(s.simulated) >= keptAnswers {
		s.simulated = make(map[simulationKey]Answer)
	}
	s.simulated[key] = answer
	return answer, nil
}

// gapsOf are the gaps of one index of dispersion, with mean 1, in order of size.
func (s *Sizer) gapsOf(cell int) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.gaps[cell]; ok {
		return known
	}
	if s.gaps == nil || len(s.gaps) >= keptGaps {
		s.gaps = make(map[int][]float64)
	}
	built := strata(seriesRequests, gammaGap(math.Pow(dispersionStep, float64(cell))))
	s.gaps[cell] = built
	return built
}

// simulate replaces the formula's rate by the mean of the rates of several series, less its
// standard error, unless that takes too many iterations.
func (c *cell) simulate(gaps []float64, seed uint64, a *Answer) {
	prompts, outputs := c.Mix.prompts.full(), c.Mix.outputs.full()
	if outputs.Quantile(1) > longestOutput {
		return
	}
	sorted := series{gaps: gaps, prompts: strata(len(gaps), prompts.whole), outputs: strata(len(gaps), outputs.whole)}
	around, left, start := c.around(a.Rate), mostIterations, a.Rate
	var rates estimate
	for rates.n < fewestSeries || rates.n < mostSeries && rates.uncertain(LeastUsefulShare*a.MeanRate) {
		r := newReplay(c.Replica, c.Objective, sorted.shuffled(seed+uint64(rates.n), around))
		r.left = left
		allowed := int((1 - c.Objective.Percentile) * seriesRequests)
		rate := c.climb(func(rate float64) bool { return r.left > 0 && r.run(rate, allowed).either <= allowed }, start)
		if left = r.left; left <= 0 {
			break
		}
		rates.add(rate)
		start = rates.mean
	}
	if a.Iterations = mostIterations - left; rates.n < fewestSeries {
		return
	}
	a.Simulated, a.Rate = true, rates.mean
	c.conclude(a, c.misses(a.Rate))
	a.Rate = max(0, rates.mean-rates.error())
}

// around is the number of requests before and after those that count, three times those in flight
// at a rate: the engine is then in its steady state.
func (c *cell) around(rate float64) int {
	l, ok := c.loadAt(rate)
	if !ok {
		return leastAround
	}
	inFlight := min(float64(c.Replica.MaxSequences), l.decoding+rate*l.service) + rate*max(l.wait, c.Objective.TTFT)
	return int(min(seriesRequests, max(leastAround, aroundInFlight*inFlight)))
}

// estimate is a mean of n values, with the sum of the squares of their distances from it (Welford,
// 1962).
type estimate struct {
	n             int
	mean, squares float64
}

func (e *estimate) add(value float64) {
	e.n++
	distance := value - e.mean
	e.mean += distance / float64(e.n)
	e.squares += distance * (value - e.mean)
}

// error is the standard error of the mean.
func (e *estimate) error() float64 { return math.Sqrt(e.squares / float64(e.n*(e.n-1))) }

// uncertain reports whether another series is due; far below the least useful rate none is.
func (e *estimate) uncertain(useful float64) bool {
	return e.error() > seriesError*e.mean && e.mean+3*e.error() > useful
}

// climb brackets the highest rate that passes with growing steps, and bisects the bracket.
func (c *cell) climb(passes func(rate float64) bool, start float64) float64 {
	top := c.stableRate()
	least := top * leastShare
	low := min(top, max(start, least))
	high := low
	if factor := firstStride; passes(low) {
		for high = min(top, low*factor); passes(high); high = min(top, low*factor) {
			if low = high; low == top {
				return top
			}
			factor *= factor
		}
	} else {
		for low = high / factor; !passes(low); low = high / factor {
			if high = low; high < least {
				return 0
			}
			factor *= factor
		}
	}
	for high-low > replayStep*high {
		if middle := math.Sqrt(low * high); passes(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high)
}

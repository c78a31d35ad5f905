package queueing

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
)

const (
	replayRequests = 20_000 // requests that count
	replaySkip     = 500    // requests before them that fill the engine
	replaySeed     = 2
	replayStep     = 0.004 // relative precision of the rate
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

// Simulate answers by a small simulation that starts at the answer of the formula: 20,000 requests,
// always in the same random order. Its answer is a function of the question alone, and is cached.
// If the simulation would take too many iterations, the answer of the formula stays.
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
	c.simulate(s.gapsOf(key.dispersion), &answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.simulated == nil || len(s.simulated) >= keptAnswers {
		s.simulated = make(map[simulationKey]Answer)
	}
	s.simulated[key] = answer
	return answer, nil
}

// gapsOf is the series of gaps of one index of dispersion, with mean 1.
func (s *Sizer) gapsOf(cell int) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.gaps[cell]; ok {
		return known
	}
	if s.gaps == nil || len(s.gaps) >= keptGaps {
		s.gaps = make(map[int][]float64)
	}
	random := rand.New(rand.NewPCG(replaySeed, 1))
	built := stratified(replayRequests+replaySkip, random, gammaGap(math.Pow(dispersionStep, float64(cell))))
	s.gaps[cell] = built
	return built
}

// simulate replaces the formula's rate by the simulation's, unless that takes too many iterations.
func (c *cell) simulate(gaps []float64, a *Answer) {
	prompts, outputs := c.Mix.prompts.full(), c.Mix.outputs.full()
	if outputs.Quantile(1) > longestOutput {
		return
	}
	random := rand.New(rand.NewPCG(replaySeed, 2))
	s := series{
		gaps:    gaps,
		prompts: stratified(len(gaps), random, prompts.whole),
		outputs: stratified(len(gaps), random, outputs.whole),
		skip:    replaySkip,
	}
	r := newReplay(c.Replica, c.Objective, s)
	allowed := int((1 - c.Objective.Percentile) * replayRequests)
	passes := func(rate float64) bool { return r.left > 0 && r.run(rate, allowed).either <= allowed }
	rate := c.climb(passes, a.Rate)
	if a.Iterations = mostIterations - r.left; r.left <= 0 {
		return
	}
	a.Simulated, a.Rate = true, rate
	c.conclude(a, c.misses(a.Rate))
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
	return low
}

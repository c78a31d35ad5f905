package main

import (
	"cmp"
	"math"
	"sort"

	"github.com/wva-project/wva/analyzer/queueing"
)

// replicasNeeded is the number of replicas that a rate needs.
type replicasNeeded struct {
	Arrivals float64 `json:"arrivalsPerSecond"`
	// Replicas is absent if a replica can serve no useful load.
	Replicas   int     `json:"replicas,omitzero"`
	Each       float64 `json:"eachRatePerSecond,omitzero"`
	Share      float64 `json:"eachOfItsCapacityShare,omitzero"`
	Dispersion float64 `json:"eachDispersion,omitzero"`
}

const (
	mostReplicas = 1e9 // of the search
	// countsTried is how many numbers are tried after the formula's. Each may take a simulation.
	countsTried    = 3
	roundingExcess = 1e-12 // relative
)

// replicas returns the smallest number of replicas that can serve a rate, each an equal part of it.
// The formula finds the number; if it is known to be far off, simulations correct it.
func (s sizing) replicas(arrivals float64) (*replicasNeeded, error) {
	needed := &replicasNeeded{Arrivals: arrivals}
	count, err := s.replicasByFormula(arrivals)
	if err != nil || count == 0 {
		return needed, err
	}
	best, rate := 0.0, 0.0
	for range countsTried {
		capacity, err := s.rateOfEach(count)
		if err != nil || capacity == 0 {
			return needed, err
		}
		needs := wholeReplicas(arrivals, capacity)
		// Of more replicas each gets less of a burst, so its capacity is no lower.
		enough := max(count, needs)
		if best > 0 && enough >= best {
			break
		}
		best, rate = enough, capacity
		if needs == count {
			break
		}
		count = needs
	}
	needed.Replicas, needed.Each, needed.Dispersion = int(best), arrivals/best, s.dispersionOfEach(best)
	needed.Share = needed.Each / rate
	return needed, nil
}

// replicasByFormula returns the smallest number that is enough by the formula. If there is none, it
// is that of the means, from which a simulation may go on; 0 if not even the means are within the
// limits.
func (s sizing) replicasByFormula(arrivals float64) (float64, error) {
	lone, err := s.part(math.Inf(1))
	switch {
	case err != nil || lone.MeanRate == 0:
		return 0, err
	case lone.Rate == 0:
		return wholeReplicas(arrivals, lone.MeanRate), nil
	}
	enough := func(count float64) bool {
		answer, partErr := s.part(count)
		err = cmp.Or(err, partErr)
		return wholeReplicas(arrivals, answer.Rate) <= count
	}
	least := wholeReplicas(arrivals, lone.Rate) // as if the dispersion were 1
	most := least
	for !enough(most) && most < mostReplicas {
		most *= 2
	}
	more := sort.Search(int(most-least), func(i int) bool { return enough(least + float64(i)) })
	return least + float64(more), err
}

// part is the formula's answer for one of so many replicas.
func (s sizing) part(count float64) (queueing.Answer, error) {
	s.Dispersion = s.dispersionOfEach(count)
	return s.sizer.MaxRate(s.Question)
}

// rateOfEach is the capacity of one of so many replicas; 0 if that is no useful load.
func (s sizing) rateOfEach(count float64) (float64, error) {
	s.Dispersion = s.dispersionOfEach(count)
	a, err := s.answers(false)
	if err != nil || a.counts().Infeasible {
		return 0, err
	}
	return a.counts().Rate, nil
}

// dispersionOfEach is the index of dispersion of an equal part of the arrivals: if a request is in
// the part with probability p, an index of I becomes 1+p(I-1).
func (s sizing) dispersionOfEach(count float64) float64 { return 1 + (max(1, s.Dispersion)-1)/count }

// wholeReplicas is the number of replicas that can serve the arrivals at a rate each; infinite if
// the rate is zero.
func wholeReplicas(arrivals, each float64) float64 {
	return max(1, math.Ceil(arrivals/each*(1-roundingExcess)))
}

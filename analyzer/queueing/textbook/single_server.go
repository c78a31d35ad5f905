package textbook

import (
	"fmt"
	"math"
)

// SingleServer returns the queue M/M/1/K, K = 1+maxWaiting: requests one after the other, each
// taking an exponential time with this mean in seconds. It knows no batches and is for comparison
// only.
func SingleServer(service float64, maxWaiting int) (Queue, error) {
	if !(service > 0) {
		return Queue{}, fmt.Errorf("a mean service time of %g s; it must be above zero", service)
	}
	return New([]float64{1 / service}, maxWaiting)
}

// GeneralService is the queue M/G/1: requests one after the other, in times of any distribution,
// with an unlimited queue. It describes prompts that an engine computes one by one.
type GeneralService struct {
	Service float64 // mean time, s; > 0
	// SquaredCV is the variance over the squared mean: 1 for exponential times, 0 for equal ones.
	SquaredCV float64
}

// At returns the steady state at a rate of arrivals. The mean wait is exact (Pollaczek and
// Khinchine; Kleinrock, Queueing Systems 1, section 5.6), and so is the share of requests that
// wait. Their wait is assumed to be exponential with the right mean, which is exact for exponential
// times only. The error is ErrOverload if there is no steady state.
func (g GeneralService) At(rate float64) (State, error) {
	if !(g.Service > 0 && g.Service <= extreme) || !(g.SquaredCV >= 0 && g.SquaredCV <= extreme) {
		return State{}, fmt.Errorf("service of mean %g s and squared coefficient of variation %g; the mean must be above zero, "+
			"the coefficient not below zero, and both finite", g.Service, g.SquaredCV)
	}
	if !(rate >= 0 && rate <= extreme) {
		return State{}, fmt.Errorf("rate of arrivals %g; it must be finite and not below zero", rate)
	}
	load := rate * g.Service
	if load >= 1 {
		return State{}, fmt.Errorf("rate %g against a capacity of %g: %w", rate, 1/g.Service, ErrOverload)
	}
	delay := g.Service * (1 + g.SquaredCV) / 2 / (1 - load) // of those that wait
	return State{
		Rate: rate, Throughput: rate,
		Wait: load * delay, Service: g.Service,
		InService: load, Waiting: rate * load * delay, Empty: 1 - load,
		batch: 1,
		waits: waits{share: load, service: 1 / delay, growth: math.Inf(-1), maxWaiting: math.Inf(1)},
	}, nil
}

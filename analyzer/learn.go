package analyzer

import (
	"fmt"
	"math"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// A profile is learned only under load: the mean time between tokens must be visibleLoad times that
// of a nearly empty batch, and the windows must hold requestsForLearn requests.
const (
	visibleLoad      = 1.2
	requestsForLearn = 100
)

// learn derives a profile from the metrics of a variant's replicas, by the same balance as
// calibrate. The iteration of a nearly empty batch is the shortest that was seen, prefill follows
// from the prefill times, and decoding is the rest of an iteration under load. One load does not
// separate the two costs of decoding: all of it is attributed to context tokens.
func learn(w work, s measured) (p queueing.Profile) {
	p.Iteration = s.floor
	tokens, _ := w.mix.Work(queueing.Profile{PerPromptToken: 1}, w.hits)
	_, contexts := w.mix.Work(queueing.Profile{PerContextToken: 1}, w.hits)
	added := (1 - s.floor/s.itl) / s.rate // seconds that a request adds to iterations
	if w.chunks > 0 {
		own := max(s.prefill-w.chunks*s.itl, s.prefill/4) / max(0.5, 1+s.rate*s.itl*(1-w.chunks))
		p.PerPromptToken = min(own, 0.9/s.rate) / tokens
	}
	if contexts > 0 {
		p.PerContextToken = max(added-p.PerPromptToken*tokens, added/10) / contexts
	}
	for _, value := range []*float64{&p.Iteration, &p.PerPromptToken, &p.PerContextToken} {
		if *value > 0 {
			*value = steps(*value, coarseMean)
		}
	}
	return p
}

// measured holds means over the replicas of a variant that report, and the shortest iteration.
type measured struct{ requests, rate, itl, prefill, floor float64 }

// enough returns why a profile cannot be learned from these metrics; "" if it can.
func (s measured) enough(role fleet.Role) (measured, string) {
	switch {
	case role == fleet.RolePrefill:
		return s, "no profile: it cannot be learned from a prefill replica; configure one"
	case s.requests < requestsForLearn:
		return s, fmt.Sprintf("no profile: fewer than %d requests in 5 minutes to learn one from", requestsForLearn)
	case !(s.floor > 0) || !(s.itl >= visibleLoad*s.floor):
		return s, "no profile: the load is too light to learn one"
	case role != fleet.RoleDecode && !(s.prefill > 0):
		return s, "no profile: the engines report no prefill time to learn one from"
	}
	return s, ""
}

// measure returns the means over a variant's replicas.
func (m Model) measure(v Variant) measured {
	s := measured{floor: v.shortestITL()}
	var replicas, prefills float64
	for _, r := range v.Replicas {
		means := r.Calibrating()
		rate, rated := means.Rate.Known()
		itl, timed := means.ITL.Known()
		served := servedRate(m.stepsOf(v), rate, means.Running.Or(0), itl)
		if r.Scrapes < MinScrapes || !rated || !timed || served == rate && rate < minRequests {
			continue
		}
		replicas++
		s.requests += served * peakSeconds
		s.rate += served
		s.itl += itl
		if prefill, known := means.Prefill.Known(); known && prefill > 0 {
			prefills++
			s.prefill += prefill
		}
	}
	s.rate /= max(1, replicas)
	s.itl /= max(1, replicas)
	s.prefill /= max(1, prefills)
	return s
}

// shortestITL returns the shortest time between tokens that its replicas have shown, in seconds; 0
// if none did.
func (v Variant) shortestITL() float64 {
	shortest := math.Inf(1)
	for _, r := range v.Replicas {
		if floor, known := r.ITLFloor.Known(); known && floor > 0 {
			shortest = min(shortest, floor)
		}
	}
	if math.IsInf(shortest, 1) {
		return 0
	}
	return shortest
}

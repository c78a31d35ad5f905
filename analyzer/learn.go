package analyzer

import (
	"math"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// What a profile is learned from must show a load: the mean time between tokens stands out from that of a nearly empty batch
// by this much, and the windows hold so many requests.
const (
	visibleLoad      = 1.2
	requestsForLearn = 100
)

// learn derives a profile from what the replicas of a variant show, by the same balance as calibrate: an iteration of a nearly
// empty batch is the shortest that was seen, prefill follows from the times to prefill, and what decoding adds is the rest of
// an iteration under load. What was never seen is not told apart: all that decoding adds is taken to come from contexts.
func learn(w work, s sight) (p queueing.Profile) {
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

// sight is what the replicas of a variant show together: means over those that report, and the least iteration.
type sight struct{ requests, rate, itl, prefill, floor float64 }

// enough returns why a profile cannot be learned from what was seen; "" where it can.
func (s sight) enough(role fleet.Role) (sight, string) {
	switch {
	case role == fleet.RolePrefill:
		return s, "a profile cannot be learned of a replica that only prefills; give it one"
	case s.requests < requestsForLearn:
		return s, "too few requests were seen to learn a profile"
	case !(s.floor > 0) || !(s.itl >= visibleLoad*s.floor):
		return s, "no load was seen that slows tokens down, so no profile could be learned"
	case role != fleet.RoleDecode && !(s.prefill > 0):
		return s, "the engines report no prefill time, so no profile could be learned"
	}
	return s, ""
}

func look(v Variant) sight {
	s := sight{floor: math.Inf(1)}
	var replicas, prefills float64
	for _, r := range v.Replicas {
		rate, rated := r.MeanRate.Known()
		itl, timed := r.MeanITL.Known()
		if floor, known := r.ITLFloor.Known(); known && floor > 0 {
			s.floor = min(s.floor, floor)
		}
		if r.Scrapes < MinScrapes || !rated || !timed || rate < minRequests {
			continue
		}
		replicas++
		s.requests += rate * peakSeconds
		s.rate += rate
		s.itl += itl
		if prefill, known := r.MeanPrefill.Known(); known && prefill > 0 {
			prefills++
			s.prefill += prefill
		}
	}
	if math.IsInf(s.floor, 1) {
		s.floor = 0
	}
	s.rate /= max(1, replicas)
	s.itl /= max(1, replicas)
	s.prefill /= max(1, prefills)
	return s
}

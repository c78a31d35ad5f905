package demo

import (
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// timelineSeconds is the virtual time between two points of a timeline, that of a baseline's
// scrapes.
const timelineSeconds = int(simulation.ScrapeInterval)

// timeline is the time series of one policy. A nil timeline records nothing.
type timeline struct {
	variants []fleet.VariantID
	seconds  []float64
	replicas [][]float64 // ready or not, by variant
	// 95th percentiles of the chat model's last minute, in seconds; NaN without requests
	ttft, itl []float64
	cost      []float64 // so far
	waiting   []float64 // requests, at the gateway and at engines
}

func newTimeline(s *scenario) *timeline {
	t := &timeline{replicas: make([][]float64, len(s.variants))}
	for _, v := range s.variants {
		t.variants = append(t.variants, v.ID)
	}
	return t
}

// observe adds a point, if one is due at the fleet's time.
func (t *timeline) observe(f *simulation.Fleet) {
	if t == nil || int(f.Now())%timelineSeconds != 0 || f.Now() != math.Trunc(f.Now()) {
		return
	}
	if last := len(t.seconds) - 1; last >= 0 && t.seconds[last] == f.Now() {
		return
	}
	t.seconds = append(t.seconds, f.Now())
	waiting := 0
	for _, tally := range f.Tallies() {
		waiting += tally.Queued
	}
	for _, s := range f.States() {
		waiting += s.Waiting
		for i, id := range t.variants {
			if id == s.Variant {
				t.replicas[i] = append(t.replicas[i], float64(s.Replicas))
			}
		}
	}
	recent := f.Recent(chatModel, 60)
	if recent.Served == 0 {
		recent.TTFT, recent.ITL = math.NaN(), math.NaN()
	}
	t.ttft, t.itl = append(t.ttft, recent.TTFT), append(t.itl, recent.ITL)
	cost := 0.0
	for _, e := range f.Expenses() {
		cost += e.Cost
	}
	t.cost, t.waiting = append(t.cost, cost), append(t.waiting, float64(waiting))
}

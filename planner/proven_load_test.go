package planner

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Replicas that served the rate are enough for it, whatever a capacity that is computed anew says,
// within its noise.
func TestReplicasThatServedTheRateAreEnough(t *testing.T) {
	for name, test := range map[string]struct {
		lack   float64
		change func(z *sizedModel)
		proven bool
	}{
		"a lack by chance":           {lack: 1.1, proven: true},
		"a lack beyond chance":       {lack: 1.2},
		"a queue that adds to it":    {lack: 1.1, change: func(z *sizedModel) { z.growth = 0.1 }},
		"misses":                     {lack: 1.1, change: func(z *sizedModel) { z.demand.parts = sixServe(hourOf(0.06, 2)) }},
		"misses long ago":            {lack: 1.1, change: func(z *sizedModel) { z.demand.parts[5].missed = 300 }, proven: true},
		"misses in the latest part":  {lack: 1.1, change: func(z *sizedModel) { z.demand.parts[partsOfWindow-1].missed = 20 }},
		"more replicas served it":    {lack: 1.1, change: func(z *sizedModel) { z.demand.parts[partsOfWindow-2].replicas = 7 }},
		"replicas left in the proof": {lack: 1.1, change: func(z *sizedModel) { z.demand.parts[partsOfWindow-4].replicas = 7 }},
		"replicas are leaving":       {lack: 0.92, change: func(z *sizedModel) { z.candidates[0].now = 5 }},
		"a replica is new": {lack: 1.1, change: func(z *sizedModel) {
			z.demand.starting = spans{{epoch.Add(-5 * time.Minute), epoch.Add(-4 * time.Minute)}}
		}},
		"a gap in the parts":     {lack: 1.1, change: func(z *sizedModel) { z.demand.constant.parts = 2 * partLength }},
		"the rate rises":         {lack: 1.1, change: func(z *sizedModel) { z.demand.constant.rises = true }},
		"few requests":           {lack: 1.1, change: func(z *sizedModel) { z.demand.parts = sixServe(hourOf(0, 0.1)) }},
		"TTFT is missed now":     {lack: 1.1, change: func(z *sizedModel) { z.demand.ttft = fleet.Observed(30) }},
		"a queue at the gateway": {lack: 1.1, change: func(z *sizedModel) { z.demand.queued, z.demand.backlog = 7, 7 }},
		"a queue at engines":     {lack: 1.1, change: func(z *sizedModel) { z.demand.backlog = 7 }, proven: true},
		"a queue at an objective of ITL": {lack: 1.1, change: func(z *sizedModel) {
			z.demand.backlog = 7
			for _, v := range z.variants {
				v.objective = fleet.Objective{ITL: time.Second, Percentile: 0.95}
			}
		}},
		"a rate of five minutes":        {lack: 1.1, change: func(z *sizedModel) { z.demand.constant.over = 5 * time.Minute }},
		"no constant rate":              {lack: 1.1, change: func(z *sizedModel) { z.demand.constant = constantRate{} }},
		"no error budget":               {lack: 1.1, change: func(z *sizedModel) { z.correction.known = false }},
		"a replica starts":              {lack: 1.1, change: func(z *sizedModel) { z.candidates[0].starting = 1 }},
		"another variant serves too":    {lack: 1.1, change: func(z *sizedModel) { z.candidates[1].now = 1 }},
		"parts as long as their window": {lack: 1.1, change: func(z *sizedModel) { z.demand.parts, z.demand.partLength = z.demand.parts[:2], time.Hour }},
	} {
		o := fleet.Objective{TTFT: time.Second, Percentile: 0.95}
		serving := &variant{Variant: &fleet.Variant{}, objective: o, now: 6, podCounts: podCounts{ready: 6}}
		other := &variant{Variant: &fleet.Variant{}, objective: o}
		z := &sizedModel{
			model:      &model{variants: []*variant{serving, other}},
			candidates: []candidate{{variant: serving, share: 0.1}, {variant: other, share: 0.1}},
			demand:     demand{parts: sixServe(hourOf(0.01, 2)), partLength: partLength, constant: constantRate{mean: 2, over: 31 * time.Minute, parts: 30 * time.Minute}},
			correction: correction{factor: 1, known: true}, latest: test.lack * 0.6,
		}
		if test.change != nil {
			test.change(z)
		}
		z.proveCapacity()
		enough := z.latest+z.growth <= z.committed()
		if z.proof > 0 != test.proven || enough != test.proven || test.proven != (z.provenText() != "") {
			t.Errorf("%s: %v of %v needed, %q", name, z.latest, z.committed(), z.provenText())
		}
	}
}

// sixServe sets the replicas of the parts.
func sixServe(parts []budgetPart) []budgetPart {
	for k := range parts {
		parts[k].replicas = 6
	}
	return parts
}

// The proof of one variant says nothing of another: a cheaper one gets the replicas that it needs,
// and if there is none, nothing is started.
func TestProofIsThatOfOneVariant(t *testing.T) {
	decide := func(cost, each float64, replicas int) (h100, l40s int) {
		s := h100AndL40S(6, 0, [2]float64{each, 0}, 100*time.Millisecond)
		s.variant("l40s").Cost = cost
		s.Variants[1].Range.Max = 60
		s.served(func(_ int, p *fleet.LatencyPart) {
			rated(p, 6*each)
			p.Replicas = replicas
		})
		s.load(func(l *fleet.Load) {
			peak := 1.02 * 6 * each
			l.Dispersion = fleet.Observed(1)
			l.PeakArrivals, l.PeakError, l.PeakCovered = fleet.Observed(peak), fleet.Observed(math.Sqrt(peak/60)), true
		})
		plan := s.decide(t)
		return plan["h100"].Replicas, plan["l40s"].Replicas
	}
	proven := 0
	for each := 20.0; each < 40; each += 0.5 {
		if _, all := decide(0.3, each, 9); all > 0 { // parts of nine replicas prove nothing of six
			if _, some := decide(0.3, each, 6); some > 0 && some < all {
				t.Errorf("%v req/s each: %d cheap replicas, and %d without a proof", each, some, all)
			}
		}
		h100, l40s := decide(5, each, 6)
		if more, others := decide(5, each, 9); h100 == 6 && l40s == 0 && more+others > 6 {
			proven++
		}
	}
	if proven == 0 {
		t.Error("no load that was served kept its six replicas")
	}
}

package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// within returns the metrics of a replica that serves a rate with so much time between tokens, which
// was shortest at the floor.
func within(rate, itl, floor float64) fleet.Usage {
	r := busy(20, 0, 0.2, rate)
	r.ITL, r.MeanITL, r.ITLFloor, r.PeakRate = fleet.Observed(itl), fleet.Observed(itl), fleet.Observed(floor), fleet.Observed(4*rate)
	return r
}

// Times between tokens of the slow variant are far above the objective: the load would have to fall
// to a tenth for it. The fast one serves more alone.
func TestOverloadedVariantDoesNotLimitTheOthers(t *testing.T) {
	limit := fleet.Objective{ITL: 30 * time.Millisecond}
	slow := Variant{Replicas: replicas(1, within(5, 0.200, 0.020)), Objective: limit}
	fast := Variant{Replicas: replicas(2, within(15, 0.020, 0.008)), Objective: limit}
	c := Analyze(demand(slow, fast), Options{})
	if rate := 35 * c[1].Share.Or(0); rate < 15 || c[1].LimitedBy != LimitITL {
		t.Errorf("%+v, that is %v/s, want the capacity that the fast variant has alone", c[1], rate)
	}
	if !c[0].NoMore || 35*c[0].Share.Or(1) > 0.1 {
		t.Errorf("%+v of a variant that the others serve more without", c[0])
	}
	kept := slow
	kept.Kept = true // its requests stay with it
	if c := Analyze(demand(kept, fast), Options{}); c[1].LimitedBy != LimitRouting {
		t.Errorf("%+v beside a variant that is kept", c[1])
	}
}

// If a catalogue says that a variant has s times the throughput of another, the time of an iteration
// is 1/s times as long, also if it is nearly empty: less of the objective is left for load.
func TestCataloguesRatioHasTheTimeOfAnEmptyBatch(t *testing.T) {
	const alpha, work, rate = 0.008, 0.030, 14.0
	itl := alpha / (1 - rate*work)
	for _, objective := range []time.Duration{15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		limit := Saturation{}.withDefaults().MaxITLShare * objective.Seconds()
		for _, speed := range []float64{0.25, 0.5, 2, 8} {
			v := Variant{Replicas: replicas(2, within(rate, itl, alpha)), Objective: fleet.Objective{ITL: objective}, Speed: 1}
			c := Analyze(demand(v, Variant{Objective: v.Objective, Speed: speed}), Options{Saturation: Saturation{KVThreshold: 100}})
			if c[0].LimitedBy != LimitITL || c[1].Basis != BasisSibling {
				t.Fatalf("%v, %v: %+v", objective, speed, c)
			}
			want := (1 - alpha/speed/limit) / (work / speed)
			if want < leastGain*speed*(1-alpha/limit)/work {
				want = leastGain * speed * (1 - alpha/limit) / work // nearly nothing
			}
			want = min(want, maxExtrapolation*speed*(1-alpha/limit)/work)
			if got := 2 * rate * c[1].Share.Or(0); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("ITL %v, %v times the throughput: %v/s, want %v/s", objective, speed, got, want)
			}
		}
	}
}

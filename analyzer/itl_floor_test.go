package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// within returns the metrics of a replica that serves a rate with so much time between tokens,
// which was shortest at the floor.
func within(rate, itl, floor float64) fleet.Usage {
	r := busy(20, 0, 0.2, rate)
	r.ITL, r.MeanITL, r.ITLFloor, r.PeakRate = fleet.Observed(itl), fleet.Observed(itl), fleet.Observed(floor), fleet.Observed(4*rate)
	return r
}

// An L40S that has never had a time between tokens of 30 ms serves nothing within that, although
// its memory would allow it; an H100 does.
func TestVariantThatNeverMetTheObjectiveGetsNoMoreReplicas(t *testing.T) {
	limit := fleet.Objective{ITL: 30 * time.Millisecond}
	slow := Variant{Replicas: replicas(5, within(5, 0.050, 0.042)), Objective: limit}
	fast := Variant{Replicas: replicas(1, within(15, 0.020, 0.008)), Objective: limit}
	c := Analyze(demand(slow, fast), Options{})
	if rate := 40 * c[0].Share.Or(1); rate > 1e-3 || !c[0].NoMore || c[0].LimitedBy != LimitITL {
		t.Errorf("%+v, that is %v/s, of a variant that cannot meet the objective", c[0], rate)
	}
	if rate := 40 * c[1].Share.Or(0); rate < 15 || rate > 18 || c[1].NoMore || c[1].LimitedBy != LimitITL {
		t.Errorf("%+v, that is %v/s, want about 16/s within 21 ms", c[1], rate)
	}
	// a profile shows the same of the other variant
	profiled := chat(40, Variant{Replicas: slow.Replicas, Objective: slo(time.Second, 30*time.Millisecond)}, Variant{Profile: h100(), Objective: slo(time.Second, 30*time.Millisecond)})
	if c := Analyze(profiled, Options{}); 40*c[0].Share.Or(1) > 1e-3 || !c[0].NoMore {
		t.Errorf("%+v beside a profile that meets the objective", c[0])
	}
	// no other variant can do better, or none is known to
	neither := fast
	neither.Replicas = replicas(1, within(15, 0.050, 0.035))
	for name, other := range map[string]Variant{"cannot either": neither, "never ran": {Objective: limit}} {
		if c := Analyze(demand(slow, other), Options{}); 40*c[0].Share.Or(0) < 1 || c[0].NoMore {
			t.Errorf("%+v beside one that %s, want a capacity by its other limits", c[0], name)
		}
	}
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

// If a catalogue says that a variant has s times the throughput of another, the time of an
// iteration is 1/s times as long, also if it is nearly empty: less of the objective is left for
// load.
func TestCataloguesRatioHasTheTimeOfAnEmptyBatch(t *testing.T) {
	const alpha, work, rate = 0.008, 0.030, 14.0
	itl := alpha / (1 - rate*work)
	for _, objective := range []time.Duration{15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond} {
		limit := Saturation{}.withDefaults().MaxITLShare * objective.Seconds()
		for _, speed := range []float64{0.25, 0.5, 2} {
			v := Variant{Replicas: replicas(2, within(rate, itl, alpha)), Objective: fleet.Objective{ITL: objective}, Speed: 1}
			c := Analyze(demand(v, Variant{Objective: v.Objective, Speed: speed}), Options{Saturation: Saturation{KVThreshold: 100}})
			if c[0].LimitedBy != LimitITL || c[1].Basis != BasisSibling {
				t.Fatalf("%v, %v: %+v", objective, speed, c)
			}
			own := (1 - alpha/limit) / work
			want := min(speed*own, (1-alpha/speed/limit)/(work/speed))
			want = max(want, minStartShare*speed*own) // a guess starts up to four times as many
			if got := 2 * rate * c[1].Share.Or(0); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("ITL %v, %v times the throughput: %v/s, want %v/s", objective, speed, got, want)
			}
		}
	}
}

// The objective of a slower variant counts if the reference is at another limit, too. At a light
// load nothing is known of the time that load adds.
func TestObjectiveLimitsASlowerSibling(t *testing.T) {
	objective := fleet.Objective{ITL: 60 * time.Millisecond}
	r := within(14, 0.016, 0.008)
	r.KV, r.MeanKV = fleet.Observed(0.7), fleet.Observed(0.7)
	of := func(r fleet.Usage, o fleet.Objective, speed float64) Capacity {
		return Analyze(demand(Variant{Replicas: replicas(1, r), Objective: objective, Speed: 1}, Variant{Objective: o, Speed: speed}), Options{})[1]
	}
	// half of an iteration is load: of 42 ms, an empty batch takes 32, and 14/s take 64
	want := 0.25 * 14 * (1 - 32.0/42) / 0.5
	if c := of(r, objective, 0.25); math.Abs(14*c.Share.Or(0)-want) > 1e-9 || c.LimitedBy != LimitITL {
		t.Errorf("%+v, that is %v/s, want %v/s within 42 ms", c, 14*c.Share.Or(0), want)
	}
	light := r
	light.ITL, light.MeanITL = fleet.Observed(0.009), fleet.Observed(0.009)
	ratio := 0.25 * of(light, objective, 1).Share.Or(0)
	if c := of(light, objective, 0.25); math.Abs(c.Share.Or(0)/ratio-(1-32.0/42)/(1-8.0/42)) > 1e-9 {
		t.Errorf("%+v at a light load, want the part that the time of an empty batch leaves", c)
	}
	for name, c := range map[string]Capacity{"no objective": of(r, fleet.Objective{}, 0.25), "a faster one": of(r, objective, 2)} {
		if c.LimitedBy != LimitKV {
			t.Errorf("%s: %+v, want the ratio of the catalogue", name, c)
		}
	}
	least := minStartShare * 0.1 * of(light, objective, 1).Share.Or(0)
	if c := of(light, objective, 0.1); c.LimitedBy != LimitITL || math.Abs(c.Share.Or(1)/least-1) > 1e-9 {
		t.Errorf("%+v of a variant of which an empty batch takes 80 ms, want a quarter of the ratio", c)
	}
}

// A variant is unable only beside one that serves within the same objective.
func TestOnlyAVariantThatServesProvesThatTheObjectiveCanBeMet(t *testing.T) {
	limit := fleet.Objective{ITL: 30 * time.Millisecond}
	slow := Variant{Replicas: replicas(5, within(5, 0.050, 0.042)), Objective: limit}
	able := within(15, 0.020, 0.008)
	idle, young := able, able
	idle.Running, idle.FirstTokens, idle.MeanRate = fleet.Observed(0), fleet.Observed(0), fleet.Observed(0)
	young.MeanRate = fleet.Reading{}
	loose := fleet.Objective{ITL: 100 * time.Millisecond}
	for name, c := range map[string]struct {
		one, other Variant
		unable     bool
	}{
		"one that serves":                 {slow, Variant{Replicas: replicas(1, able), Objective: limit}, true},
		"one that is idle":                {slow, Variant{Replicas: replicas(1, idle), Objective: limit}, false},
		"one that has just begun":         {slow, Variant{Replicas: replicas(1, young), Objective: limit}, false},
		"one that met a looser objective": {slow, Variant{Replicas: replicas(1, within(15, 0.080, 0.060)), Objective: loose}, false},
		"one sized for a looser one":      {slow, Variant{Profile: h100(), Objective: slo(time.Second, 100*time.Millisecond)}, false},
		"a slower one":                    {Variant{Replicas: slow.Replicas, Objective: limit, Speed: 3}, Variant{Replicas: replicas(1, able), Objective: limit, Speed: 1}, false},
		"a few requests of it":            {Variant{Replicas: replicas(5, within(0.02, 0.050, 0.042)), Objective: limit}, Variant{Replicas: replicas(1, able), Objective: limit}, true},
	} {
		m := demand(c.one, c.other)
		m.Prompts, m.Outputs, m.PromptTokens, m.OutputTokens = chat(1).Prompts, chat(1).Outputs, fleet.Observed(1155), fleet.Observed(211)
		got := Analyze(m, Options{})[0]
		if rate := m.Rate.Value * got.Share.Or(1); got.NoMore != c.unable || (rate < 1e-3) != c.unable {
			t.Errorf("beside %s: %+v, that is %v/s", name, got, rate)
		}
	}
}

// The capacity of others is not derived from that of a variant that is left out.
func TestVariantThatIsLeftOutIsNoReference(t *testing.T) {
	limit := fleet.Objective{ITL: 30 * time.Millisecond}
	slow := Variant{Replicas: replicas(5, within(5, 0.050, 0.042)), Objective: limit, Speed: 1}
	fast := Variant{Replicas: replicas(1, within(15, 0.020, 0.008)), Objective: limit, Speed: 3.2}
	m := demand(slow, fast, Variant{Objective: limit, Speed: 1.6})
	if c := Analyze(m, Options{})[2]; m.Rate.Value*c.Share.Or(0) < 2 {
		t.Errorf("%+v of a variant with half the speed of one that serves 16/s", c)
	}
}

// Replicas of the same kind differ by chance.
func TestTwinIsNotLeftOut(t *testing.T) {
	one, many := busy(50, 0, 0.7*7.1/9.4, 7.1), busy(46, 0, 0.7*6.6/9.4, 6.6)
	one.PeakRate, many.PeakRate = fleet.Observed(30), fleet.Observed(30)
	for i, c := range Analyze(demand(Variant{Replicas: replicas(1, one)}, Variant{Replicas: replicas(20, many)}), Options{}) {
		if c.NoMore || c.LimitedBy == LimitRouting && c.Share.Or(0) < 0.05*7/139 {
			t.Errorf("variant %d: %+v", i, c)
		}
	}
}

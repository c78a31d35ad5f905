package analyzer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Variants whose throughput the catalogue's ratio predicts, but not the time of an empty iteration:
// an 8B model on H100, and variants of it by tensor parallelism and precision; a small model, whose
// fixed time hides the accelerator.
func TestVariantKeepsItsCapacityBesideOneThatTheCatalogueGetsWrong(t *testing.T) {
	chat := func(alpha, sequence, prompt, kvTokens float64) trueEngine {
		return trueEngine{alpha: alpha, sequence: sequence, prompt: prompt, outputs: 210, context: 1200, kvTokens: kvTokens, maxSequences: 256}
	}
	h100 := chat(0.00607, 85e-6, 0.0165, 430e3)
	for name, test := range map[string]struct {
		engines []trueEngine
		ratio   float64
	}{
		"four accelerators beside one":  {[]trueEngine{chat(0.0037, 25e-6, 0.0042, 1.9e6), h100}, 4},
		"eight accelerators beside one": {[]trueEngine{chat(0.0030, 14e-6, 0.0025, 3.9e6), h100}, 8},
		"int4 beside bf16":              {[]trueEngine{chat(0.0025, 75e-6, 0.0165, 500e3), h100}, 1},
		"a small model":                 {[]trueEngine{chat(0.0060, 25e-6, 0.0040, 1e6), chat(0.0070, 60e-6, 0.0120, 500e3)}, 3.2},
	} {
		t.Run(name, func(t *testing.T) {
			past := []seen{{peak: 100, floor: tiny}, {peak: 100, floor: tiny}}
			for _, n := range []int{3, 10, 40} {
				m, _ := steady(10, test.engines, []int{n, n}, []float64{test.ratio, 1}, past, 0, rand.New(rand.NewPCG(1, 2)))
				for i, c := range Analyze(m, Options{}) {
					if rate, want := c.Share.Or(0)*10, test.engines[i].capacity(); math.Abs(rate/want-1) > 0.05 {
						t.Errorf("%d replicas of each: variant %d can serve %.3g/s by %s, want %.3g/s", n, i, rate, c.LimitedBy, want)
					}
				}
			}
		})
	}
}

// A sibling differs by more than its accelerators: four H100 with tensor parallelism do not finish
// an empty iteration in a quarter of the time that one needs.
func TestSiblingsIterationTimeSaysNothingAboutAnother(t *testing.T) {
	slow, fast := busy(10, 0, 0.05, 0.5), busy(10, 0, 0.05, 0.5)
	slow.ITL, slow.ITLFloor, slow.PeakRate = fleet.Observed(0.0105), fleet.Observed(0.010), fleet.Observed(9)
	fast.ITL, fast.ITLFloor, fast.PeakRate = fleet.Observed(0.0063), fleet.Observed(0.006), fleet.Observed(9)
	alone := Analyze(demand(Variant{Replicas: replicas(1, fast)}), Options{})[0].Share.Or(0) * 0.5
	c := Analyze(demand(Variant{Replicas: replicas(1, slow), Speed: 1}, Variant{Replicas: replicas(1, fast), Speed: 4}), Options{})
	if beside := c[1].Share.Or(0); math.Abs(beside-alone) > 1e-9 {
		t.Errorf("capacity %v/s beside another variant, %v/s alone", beside, alone)
	}
}

func TestPeakRateAsksForNoMoreReplicas(t *testing.T) {
	for name, rate := range map[string]float64{"light load": 0.5, "no request for a while": 0} {
		r := busy(2, 0, 0.01, rate)
		r.PeakRate = fleet.Observed(rate)
		m := demand(Variant{Replicas: replicas(4, r)})
		m.Rate = fleet.Observed(20) // most of it waits at the gateway
		if c := Analyze(m, Options{})[0]; needed(t, c) != 4 || c.LimitedBy != LimitPeakRate {
			t.Errorf("%s: %+v, want the 4 replicas to be enough as long as only the peak rate limits them", name, c)
		}
	}
}

func TestVariantThatGetsHardlyAnyRequestsShowsNoCapacity(t *testing.T) {
	loaded, idle := busy(50, 0, 0.35, 5), busy(0.2, 0, 0.0005, 0.02)
	loaded.PeakRate, idle.PeakRate = fleet.Observed(9), fleet.Observed(0.03)
	c := Analyze(demand(Variant{Replicas: replicas(4, loaded)}, Variant{Replicas: replicas(1, idle)}), Options{})[1]
	if rate := c.Share.Or(0) * 20.02; rate > 0.17 || c.LimitedBy != LimitPeakRate {
		t.Errorf("capacity %+v, that is %v/s, by the memory of a replica that serves 0.02/s", c, rate)
	}
}

func TestTokensOfANearlyEmptyReplicaAskForNoMoreReplicas(t *testing.T) {
	// An empty replica takes 29 ms, and 0.7 of the objective is 29.4 ms.
	r := busy(1, 0, 0.01, 0.5)
	r.ITL, r.ITLFloor, r.PeakRate = fleet.Observed(0.030), fleet.Observed(0.029), fleet.Observed(9)
	r.MeanITL, r.MeanRate, r.MeanKV = r.ITL, r.FirstTokens, r.KV
	v := Variant{Replicas: replicas(8, r), Objective: fleet.Objective{ITL: 42 * time.Millisecond}}
	if c := Analyze(demand(v), Options{})[0]; needed(t, c) > 8 {
		t.Errorf("capacity %+v: more replicas would not be faster", c)
	}
}

func TestKVCacheFillsFasterThanTheRateGrows(t *testing.T) {
	// At 5/s half of the engine's time is work. A quarter of the cache becomes 0.7 of it at 7.4/s,
	// where an iteration takes twice as long.
	r := busy(50, 0, 0.25, 5)
	r.ITL, r.ITLFloor, r.PeakRate = fleet.Observed(0.040), fleet.Observed(0.020), fleet.Observed(90)
	v := Variant{Replicas: replicas(1, r)}
	want := 5 / (0.5 + 0.25/0.7*0.5)
	if c := Analyze(demand(v), Options{Saturation: Saturation{MaxITLStretch: 100}})[0]; math.Abs(c.Share.Or(0)*5-want) > 1e-9 || c.LimitedBy != LimitKV {
		t.Errorf("capacity %+v, that is %v/s, want %v/s, limited by KV cache", c, c.Share.Or(0)*5, want)
	}
}

package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func TestThroughputShareFallsWithTheStartUpTime(t *testing.T) {
	for startup, want := range map[time.Duration]float64{
		-time.Hour: 0.92, 0: 0.92, 30 * time.Second: 0.92, time.Minute: 0.92, 90 * time.Second: 0.795, 100 * time.Second: 0.92 - 0.25*2/3, 2 * time.Minute: 0.72, time.Hour: 0.72,
	} {
		if got := throughputShare(lead{startup: startup}, 0); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", startup, got, want)
		}
	}
}

// A loose objective is met up to the throughput, and the load may grow while a replica starts. A
// tight one is missed long before: no queue remains then.
func TestSlowStartsLeaveThroughputForGrowth(t *testing.T) {
	capacity := func(ttft, itl, startup time.Duration) float64 {
		rate, _ := capacityOf(chat(40, Variant{Profile: h100(), Objective: slo(ttft, itl), Startup: startup}), Options{})
		return rate
	}
	quick, slow := capacity(3*time.Second, 100*time.Millisecond, time.Minute), capacity(3*time.Second, 100*time.Millisecond, 2*time.Minute)
	if want := quick * 0.72 / 0.92; math.Abs(slow/want-1) > 0.02 {
		t.Errorf("loose: %v/s with a start of two minutes, %v/s with one of one, want %v/s", slow, quick, want)
	}
	quick, slow = capacity(300*time.Millisecond, 20*time.Millisecond, time.Minute), capacity(300*time.Millisecond, 20*time.Millisecond, 2*time.Minute)
	if slow != quick {
		t.Errorf("tight: %v/s with a start of two minutes, %v/s with one of one, want the same", slow, quick)
	}
}

// If more requests arrive, a batch grows as slowly as requests end: those of minutes leave time for
// a start.
func TestSlowStartsLeaveLessThroughputForRequestsOfMinutes(t *testing.T) {
	for request, want := range map[float64]float64{
		0: 0.72, 1: 0.72, 120: 0.92 - 0.2*(1-math.Exp(-1)), 300: 0.92 - 0.2*(1-math.Exp(-0.4)), 1e9: 0.92,
	} {
		if got := throughputShare(lead{startup: 2 * time.Minute}, request); math.Abs(got-want) > 1e-6 {
			t.Errorf("requests of %v s: %v, want %v", request, got, want)
		}
	}
	capacity := func(startup time.Duration) float64 {
		m := chat(2, Variant{Profile: h100(), Objective: slo(3*time.Second, 100*time.Millisecond), Startup: startup})
		m.OutputTokens = fleet.Observed(8000)
		m.Outputs = []fleet.Bucket{{Upper: 5000, Count: 35}, {Upper: 10_000, Count: 38}, {Upper: 20_000, Count: 22}, {Upper: 50_000, Count: 5}}
		rate, _ := capacityOf(m, Options{})
		return rate
	}
	if part := capacity(2*time.Minute) / capacity(time.Minute); part < 0.85 || part > 0.99 {
		t.Errorf("outputs of 8,000 tokens: %.3f of the capacity with a start of one minute", part)
	}
}

// A rate that has lasted for many start-up times is likely to last for one more.
func TestSlowStartsLeaveLessThroughputForAConstantRate(t *testing.T) {
	for steady, want := range map[time.Duration]float64{
		-time.Minute: 0.72, 0: 0.72, time.Minute: 0.72, 8 * time.Minute: 0.72, 16 * time.Minute: 0.82, 40 * time.Minute: 0.88, 1000 * time.Hour: 0.92,
	} {
		if got := throughputShare(lead{2 * time.Minute, steady}, 1); math.Abs(got-want) > 1e-4 {
			t.Errorf("constant for %v: %v, want %v", steady, got, want)
		}
	}
	r := busy(20, 0, 0.5, 5)
	of := func(v Variant, steady time.Duration) float64 {
		m := chat(40, v)
		m.Steady = steady
		rate, _ := capacityOf(m, Options{})
		return rate
	}
	for name, v := range map[string]Variant{
		"with a profile":    {Profile: h100(), Objective: slo(3*time.Second, 100*time.Millisecond), Startup: 2 * time.Minute},
		"without a profile": {Replicas: replicas(1, r), Startup: 2 * time.Minute},
	} {
		if recent, lasting := of(v, time.Minute), of(v, 40*time.Minute); math.Abs(lasting/recent/(0.88/0.72)-1) > 0.02 {
			t.Errorf("%s: %v/s at a rate that has lasted for 40 minutes, %v/s for one", name, lasting, recent)
		}
	}
}

// Without a profile the thresholds of the replicas' own metrics are lower for slow starts.
func TestSlowStartsLowerTheLimitsOfAReplicaWithoutAProfile(t *testing.T) {
	for name, r := range map[string]fleet.Usage{
		"KV cache": busy(20, 0, 0.5, 5),
		"KV cache of a busy engine": func() fleet.Usage { // whose iterations grow with the rate
			r := busy(20, 0, 0.5, 5)
			r.ITL, r.MeanITL, r.ITLFloor = fleet.Observed(0.02), fleet.Observed(0.02), fleet.Observed(0.01)
			return r
		}(),
		"throughput": func() fleet.Usage { r := busy(20, 0, 0.1, 5); r.PeakThroughput = fleet.Observed(6); return r }(),
	} {
		of := func(startup time.Duration) float64 {
			rate, _ := capacityOf(demand(Variant{Replicas: replicas(1, r), Startup: startup}), Options{})
			return rate
		}
		if quick, slow := of(time.Minute), of(2*time.Minute); math.Abs(slow/quick-0.72/0.92) > 1e-9 {
			t.Errorf("%s: %v/s with a start of two minutes, %v/s with one of one", name, slow, quick)
		}
	}
}

// A pool of two variants leaves a part of that throughput too: it does not forget slow starts
// because the load split is measured.
func TestSlowStartsLeaveThroughputOfAMix(t *testing.T) {
	objective := slo(3*time.Second, 100*time.Millisecond)
	served := func(startup, steady time.Duration) (total float64) {
		m := chat(50)
		m.Steady = steady
		m.Variants = []Variant{
			{Profile: h100(), Objective: objective, Startup: startup, Replicas: replicas(2, showing(m, h100().Cost, 19))},
			{Profile: l40s(), Objective: objective, Startup: startup, Replicas: replicas(2, showing(m, l40s().Cost, 4.5))},
		}
		for i, c := range Analyze(m, Options{}) {
			total += c.Share.Or(0) * 50 * float64(len(m.Variants[i].Replicas))
		}
		return total
	}
	quick := served(time.Minute, time.Minute)
	for steady, want := range map[time.Duration]float64{time.Minute: 0.95, time.Hour: 1} {
		if got := served(2*time.Minute, steady) / quick; math.Abs(got-want) > 0.015 {
			t.Errorf("constant for %v: with starts of two minutes a mix serves %.3f of its load with starts of one, want %v", steady, got, want)
		}
	}
}

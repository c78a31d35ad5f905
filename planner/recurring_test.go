package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// hourOf is an hour of parts with these requests per second, of which a share misses the objective.
func hourOf(missed float64, rates ...float64) []budgetPart {
	parts := make([]budgetPart, partsOfWindow)
	for i := range parts {
		requests := rates[i*len(rates)/partsOfWindow] * partLength.Seconds()
		parts[i] = budgetPart{end: epoch.Add(-time.Duration(partsOfWindow-1-i) * partLength), requests: requests, missed: missed * requests}
	}
	return parts
}

// servedModel is a model of one variant with the requests of parts of a length, of which the last
// ends at the epoch. A rate below zero is that of a part that is not known.
func servedModel(startup time.Duration, percentile float64, length time.Duration, rates ...float64) *model {
	l := fleet.Latencies{Until: epoch, Length: fleet.Duration(length)}
	for i, rate := range rates {
		if end := epoch.Add(-time.Duration(len(rates)-1-i) * length); rate >= 0 {
			l.Parts = append(l.Parts, fleet.LatencyPart{End: end, Requests: rate * length.Seconds(), Replicas: 1})
		}
	}
	v := &variant{startup: startup, objective: fleet.Objective{TTFT: time.Second, Percentile: percentile}}
	return &model{variants: []*variant{v}, engine: []fleet.Load{{Latencies: l}}}
}

// recurringOf returns the requests per second that come back, before the part of a burst.
func recurringOf(m *model) float64 {
	d := &demand{partLength: time.Duration(m.latencies().Length)}
	return m.recurring(d, Policy{}.withDefaults(), epoch) / burstOfPart
}

func TestRateThatCameBackIsKept(t *testing.T) {
	const unknown = -1
	lull := []float64{5, 5, 5, 5}
	burst := func(rates ...float64) []float64 { return slices.Concat(lull, rates, lull) }
	for _, test := range []struct {
		name       string
		startup    time.Duration
		percentile float64
		rates      []float64
		want       float64
	}{
		{"two bursts", 2 * time.Minute, 0.95, slices.Repeat(burst(30, 30), 2), 30},
		{"the second is a little lower", 2 * time.Minute, 0.95, slices.Concat(burst(30, 30), burst(28, 28)), 30},
		{"the higher of two came once", 2 * time.Minute, 0.95, slices.Concat(burst(20), burst(60), burst(20)), 20},
		{"each begins in the middle of a part", 2 * time.Minute, 0.95, slices.Repeat(burst(21, 30), 2), 30},
		{"they fall to 55 %", 2 * time.Minute, 0.95, slices.Repeat([]float64{16.5, 16.5, 16.5, 30, 30}, 3), 30},
		{"they fall to 65 %", 2 * time.Minute, 0.95, slices.Repeat([]float64{19.5, 19.5, 19.5, 30, 30}, 3), 0},
		{"from silence", 2 * time.Minute, 0.95, slices.Repeat([]float64{0, 0, 0, 30, 30}, 3), 30},
		{"the shortest lull", 2 * time.Minute, 0.95, slices.Repeat([]float64{5, 5, 30}, 4), 30},
		{"a shorter lull", 2 * time.Minute, 0.95, slices.Repeat([]float64{5, 30}, 9), 0},
		{"one burst", 2 * time.Minute, 0.95, burst(30, 30), 0},
		{"a long time of the rate, then one burst", 2 * time.Minute, 0.95, slices.Concat(slices.Repeat([]float64{30}, 8), burst(30)), 0},
		{"a slow rise, then one burst", 2 * time.Minute, 0.95, slices.Concat([]float64{5, 6, 7.2, 8.6, 10.4, 12.4, 14.9, 17.9, 21.5, 25.8, 30}, burst(30)), 0},
		{"a step", 2 * time.Minute, 0.95, slices.Concat(slices.Repeat([]float64{5}, 8), slices.Repeat([]float64{30}, 8)), 0},
		{"a ramp", 2 * time.Minute, 0.95, []float64{1, 5, 10, 15, 20, 25, 30, 35, 40, 45}, 0},
		{"a constant rate", 2 * time.Minute, 0.95, slices.Repeat([]float64{30}, 20), 0},
		{"the parts before are not known", 2 * time.Minute, 0.95, slices.Repeat([]float64{5, 5, unknown, unknown, 30, 5}, 2), 0},
		{"starts too quick to spend the budget", 0, 0.8, slices.Repeat(burst(30), 2), 0},
		{"slower starts", 2 * time.Minute, 0.8, slices.Repeat(burst(30), 2), 30},
		{"a lower percentile", 2 * time.Minute, 0.4, slices.Repeat(burst(30), 2), 0},
		{"more bursts at that percentile", 2 * time.Minute, 0.4, slices.Repeat([]float64{5, 5, 5, 30}, 4), 30},
		{"at the objective even quick starts spend it", 0, 0.95, slices.Repeat(burst(30), 2), 30},
		{"few requests", 2 * time.Minute, 0.95, slices.Repeat([]float64{0, 0, 0, 0.15}, 2), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := servedModel(test.startup, test.percentile, partLength, test.rates...)
			if got := recurringOf(m); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("%v/s, want %v", got, test.want)
			}
			d := &demand{partLength: partLength}
			off := m.recurring(d, Policy{BudgetOff: true}.withDefaults(), epoch)
			late := m.recurring(d, Policy{}.withDefaults(), epoch.Add(time.Hour))
			if off != 0 || late != 0 {
				t.Errorf("%v/s without an error budget, %v/s an hour later, want 0", off, late)
			}
		})
	}
}

// Two parts in a row with a high rate are one burst, however long a part is.
func TestLongPartsOfOneBurstCountOnce(t *testing.T) {
	if got := recurringOf(servedModel(2*time.Minute, 0.95, 20*time.Minute, 5, 30, 30)); got != 0 {
		t.Errorf("%v/s came back", got)
	}
}

// A part in which replicas started may lack requests: it is no lull.
func TestPartsWithStartsAreNoLull(t *testing.T) {
	m := servedModel(2*time.Minute, 0.95, partLength, slices.Repeat([]float64{5, 5, 5, 30}, 3)...)
	if got := recurringOf(m); math.Abs(got-30) > 1e-9 {
		t.Fatalf("%v/s came back, want 30", got)
	}
	for i := range m.engine[0].Latencies.Parts {
		m.engine[0].Latencies.Parts[i].Started = 1
	}
	if got := recurringOf(m); got != 0 {
		t.Errorf("%v/s came back", got)
	}
}

// Chance makes no burst of a constant rate, at any rate and burstiness.
func TestChanceDoesNotComeBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []float64{11, 20, 30, 50, 90, 180} {
		for _, dispersion := range []float64{1, 4} {
			found := 0
			for range 1000 {
				rates := make([]float64, partsOfWindow)
				for i := range rates {
					rates[i] = dispersion * poisson(random, mean/dispersion) / partLength.Seconds()
				}
				m := servedModel(2*time.Minute, 0.95, partLength, rates...)
				d := &demand{partLength: partLength, bursts: fleet.Observed(dispersion)}
				if m.recurring(d, Policy{}.withDefaults(), epoch) > 0 {
					found++
				}
			}
			if found > 10 {
				t.Errorf("%v requests a part, dispersion %v: came back in %d of 1000 hours", mean, dispersion, found)
			}
		}
	}
}

// TestReplicasForADemandThatCameBack has bursts that were served, of which the last is no longer in
// the peak window.
func TestReplicasForADemandThatCameBack(t *testing.T) {
	bursts := func(ready int, times ...int) fleet.Decision {
		g := cheap(group{ready: ready, running: 10, kv: 0.1, rate: 1, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(i int, p *fleet.LatencyPart) {
			p.Requests = 180
			for _, ago := range times {
				if i == servedParts-1-ago {
					p.Requests = 3600
				}
			}
			p.ITL = itlOf(p.Requests, 1)
		})
		return s.load(func(l *fleet.Load) {
			l.PeakArrivals, l.ShortPeak = fleet.Observed(12), fleet.Observed(1)
		}).decide(t)["cheap"]
	}
	once, twice := bursts(6, 3), bursts(6, 3, 9)
	if once.Replicas >= twice.Replicas {
		t.Errorf("%d replicas after one burst, %d after two", once.Replicas, twice.Replicas)
	}
	const want = "23 req/s came back within 1 h and keep their replicas"
	if got := twice.Reason.Detail(fleet.DetailBudget); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	if got := once.Reason.Detail(fleet.DetailBudget); strings.Contains(got, "came back") || !strings.Contains(got, "short scale-down window") {
		t.Errorf("%q after one burst", got)
	}
	if got := bursts(2, 3, 9).Reason.String(); !strings.Contains(got, "only bursts that come back need more replicas, the latest demand does not") {
		t.Errorf("%q", got)
	}
	if got := twice.Reason.Detail(fleet.DetailBudget); strings.Contains(got, "short scale-down window") {
		t.Errorf("%q: the highest demand is not that of the short window", got)
	}
}

// Bursts that come back do not keep a model from zero that had no request for the retention.
func TestScaleToZeroDoesNotWaitForBursts(t *testing.T) {
	decide := func(change func(l *fleet.Load)) fleet.Decision {
		g := cheap(group{ready: 3, objective: 50 * time.Millisecond})
		s := newScenario(g).scaleToZero().served(func(i int, p *fleet.LatencyPart) {
			p.Requests = 0
			if i == servedParts-4 || i == servedParts-10 {
				p.Requests = 3600
			}
			p.ITL = itlOf(p.Requests, 1)
		})
		return s.load(change).decide(t)["cheap"]
	}
	expect(t, decide(func(l *fleet.Load) {
		unused(l)
		l.LastActive = epoch.Add(-9 * time.Minute)
	}), 3, fleet.CodeCapacityUnknown)
	expect(t, decide(unused), 0, fleet.CodeScaleToZero)
}

// A demand that is over and that no capacity is known for stops no replica.
func TestPastDemandOfUnknownCapacityKeepsReplicas(t *testing.T) {
	s := newScenario(cheap(group{ready: 3})).scaleToZero().load(unused).load(func(l *fleet.Load) { l.LastActive = epoch.Add(-4 * time.Minute) })
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeLastReplica)
	s.load(func(l *fleet.Load) { l.PeakArrivals, l.PeakInFlight = fleet.Observed(5), fleet.Observed(5) })
	expect(t, s.decide(t)["cheap"], 3, fleet.CodeCapacityUnknown)
}

// Misses while replicas start raise the headroom to its neutral value at most; the reason has both
// shares.
func TestReasonHasTheShareWithStarts(t *testing.T) {
	budget := func(missed float64) string {
		s := missing20().served(func(i int, p *fleet.LatencyPart) {
			p.ITL = []fleet.Bucket{{Upper: 0.05, Count: 100}, {}}
			if i%5 == 0 {
				p.Started, p.ITL = 1, []fleet.Bucket{{Upper: 0.05, Count: 100 * (1 - missed)}, {Count: 100 * missed}}
			}
		})
		return s.decide(t)["cheap"].Reason.Detail(fleet.DetailBudget)
	}
	for missed, want := range map[float64]string{
		0.5:  "100 % within SLO over 1 h (with starts 90 %), objective 95 %: headroom ×1.00",
		0.04: "100 % within SLO over 1 h, objective 95 %: headroom ×0.70",
	} {
		if got := budget(missed); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A rate that is not known has lasted for no known time, a noisy one since the first part.
func TestRateLastsUntilItClearlyChanges(t *testing.T) {
	noisy := demand{parts: hourOf(0, 3, 4, 2.2, 3, 3.8), partLength: partLength, bursts: fleet.Observed(4), arrivals: fleet.Observed(3)}
	if got := noisy.lasted(epoch); got != time.Hour {
		t.Errorf("noise: %v, want an hour", got)
	}
	step := demand{parts: hourOf(0, 3, 30), partLength: partLength, bursts: fleet.Observed(4), arrivals: fleet.Observed(30)}
	if got := step.lasted(epoch); got != 30*time.Minute {
		t.Errorf("a step half an hour ago: %v", got)
	}
	// Bursts that come and go are no constant rate, however wide their deviation.
	bursty := demand{arrivals: fleet.Observed(5), parts: hourOf(0, 2, 8, 2, 8, 2, 5), partLength: partLength, bursts: fleet.Observed(30)}
	if all, even := bursty.lasted(epoch), bursty.lastedEvenly(epoch); all != time.Hour || even > 10*time.Minute {
		t.Errorf("bursts: %v, without bursts %v, want an hour and a few minutes", all, even)
	}
	stale := demand{arrivals: fleet.Observed(5), parts: hourOf(0, 5, 5, 5, 5, 5, 5), partLength: partLength}
	if got := stale.lastedEvenly(epoch); got != time.Hour {
		t.Errorf("%v at a constant rate, want an hour", got)
	}
	if got := stale.lastedEvenly(epoch.Add(2*partLength + 1)); got != 0 {
		t.Errorf("%v with parts that are old, want 0", got)
	}
	gap := stale
	gap.parts = append(gap.parts[:2:2], gap.parts[len(gap.parts)-3:]...)
	if got := gap.lastedEvenly(epoch); got != 3*partLength {
		t.Errorf("%v with a gap before the last three parts, want %v", got, 3*partLength)
	}
	// The parts before one of 12 requests/s had 10. A minute counts only if it is far above that.
	for rate, want := range map[float64]time.Duration{3: time.Hour, 9: time.Hour, 12: time.Hour, 15: time.Hour, 20: time.Minute} {
		d := demand{arrivals: fleet.Observed(rate), parts: hourOf(0, 10, 10, 10, 10, 10), partLength: partLength}
		d.parts[len(d.parts)-1].requests = 12 * partLength.Seconds()
		if got := d.lastedEvenly(epoch); got != want {
			t.Errorf("a minute of %v req/s: %v, want %v", rate, got, want)
		}
	}
	if got := (&demand{parts: step.parts, partLength: partLength}).lasted(epoch); got != 0 {
		t.Errorf("without a rate: %v, want 0", got)
	}
}

// Replicas that a past demand of unknown capacity keeps are preempted for the demand of others.
func TestPastDemandOfUnknownCapacityYields(t *testing.T) {
	past := func(l *fleet.Load) {
		unused(l)
		l.LastActive, l.PeakArrivals, l.PeakInFlight = epoch.Add(-4*time.Minute), fleet.Observed(5), fleet.Observed(5)
	}
	s := newScenario(cheap(group{ready: 4})).called("a-").scaleToZero().load(past).
		beside("b", newScenario(cheap(saturated(group{ready: 1}))).called("b-").gateway(30, 24)).
		node("L40S", "l1", 5, 0).on("a-cheap", "l1", "l1", "l1", "l1").on("b-cheap", "l1")
	d := s.decideWithin(t)
	if a, b := d["a-cheap"], d["b-cheap"]; b.Replicas < 3 || a.Replicas+b.Replicas > 5 {
		t.Errorf("a %+v\nb %+v\nwant accelerators of a's for b", a, b)
	}
	kept := withoutYielding([]bound{{code: fleet.CodeCapacityUnknown, least: 3, most: 3, yields: true}})
	if len(kept) != 1 || kept[0].least != 0 || kept[0].most != 3 {
		t.Errorf("%+v, want the limit of starts without the least number", kept)
	}
}

// Since a long part only the latest minute of a rate is known.
func TestRateOfALongPartHasNotLasted(t *testing.T) {
	const length = 72 * time.Minute // of a window of 24 h
	s := missing20().load(func(l *fleet.Load) {
		until := epoch.Add(-length + time.Second)
		l.Latencies = fleet.Latencies{Until: until, Length: fleet.Duration(length)}
		for i := range servedParts {
			n := 5 * length.Seconds() // a third of the rate now
			l.Latencies.Parts = append(l.Latencies.Parts, fleet.LatencyPart{End: until.Add(-time.Duration(servedParts-1-i) * length), Requests: n, Replicas: 3,
				ITL: []fleet.Bucket{{Upper: 0.05, Count: n}, {}}, TTFT: []fleet.Bucket{{Upper: 2, Count: n}, {}}})
		}
	})
	x := newView(s.Snapshot, nil, Policy{BudgetWindow: 24 * time.Hour}.withDefaults())
	if d, _ := x.measureDemand(x.models[0]); d.steadyFor > 10*time.Minute {
		t.Errorf("a rate that may be a minute old has lasted %v", d.steadyFor)
	}
}

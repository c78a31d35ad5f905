package planner

import (
	"math"
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

func TestRateThatCameBackIsKept(t *testing.T) {
	const startup = 2 * time.Minute
	for _, test := range []struct {
		name    string
		startup time.Duration
		rates   []float64
		want    float64 // before the part of a burst
	}{
		{"two bursts", startup, []float64{5, 5, 30, 5, 5, 5, 5, 30, 5, 5}, 30},
		{"the second is a little lower", startup, []float64{5, 5, 30, 5, 5, 5, 5, 28, 5, 5}, 30},
		{"the higher of two came once", startup, []float64{5, 20, 5, 60, 5, 5, 5, 20, 5, 5}, 20},
		{"one burst", startup, []float64{5, 5, 5, 30, 30, 5, 5, 5, 5, 5}, 0},
		{"a step", startup, []float64{5, 5, 5, 5, 5, 30, 30, 30, 30, 30}, 0},
		{"a ramp", startup, []float64{1, 5, 10, 15, 20, 25, 30, 35, 40, 45}, 0},
		{"a constant rate", startup, []float64{30}, 0},
		{"the lull is shorter than a scale-down", startup, []float64{30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 5, 30, 30, 30, 30, 30, 30, 30, 30, 30}, 0},
		{"a slow rise the second time", startup, []float64{5, 30, 5, 7, 9.5, 13, 18, 25, 30, 30}, 0},
		{"starts too quick to spend the budget", 0, []float64{5, 5, 10, 5, 5, 5, 5, 10, 5, 5}, 0},
		{"few requests", startup, []float64{0.005, 0.005, 0.03, 0.005, 0.005, 0.005, 0.005, 0.03, 0.005, 0.005}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			recurring := func(p Policy, now time.Time) float64 {
				d := demand{parts: hourOf(0, test.rates...), partLength: partLength}
				d.measureRecurring(p.withDefaults(), now, 0.95, test.startup)
				return d.recurring / burstOfPart
			}
			if got := recurring(Policy{}, epoch); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("%v/s, want %v", got, test.want)
			}
			if off, late := recurring(Policy{BudgetOff: true}, epoch), recurring(Policy{}, epoch.Add(time.Hour)); off != 0 || late != 0 {
				t.Errorf("%v/s without an error budget, %v/s an hour later, want 0", off, late)
			}
		})
	}
}

// A rate after parts that are not known is no jump: it may have risen slowly.
func TestUnknownPartsAreNoJump(t *testing.T) {
	known := hourOf(0, 5, 30, 5, 5, 5, 5, 30, 5, 5, 5)
	d := demand{partLength: partLength}
	for i, part := range known {
		if i != 11 { // the last one before the second burst
			d.parts = append(d.parts, part)
		}
	}
	if d.measureRecurring(Policy{}.withDefaults(), epoch, 0.95, 2*time.Minute); d.recurring != 0 {
		t.Errorf("%v/s came back", d.recurring)
	}
}

// TestReplicasForADemandThatCameBack has bursts that were served, of which the last is no longer in
// the peak window.
func TestReplicasForADemandThatCameBack(t *testing.T) {
	bursts := func(times ...int) fleet.Decision {
		g := cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(i int, p *fleet.LatencyPart) {
			p.Requests, p.ITL = 180, []fleet.Bucket{{Upper: 0.05, Count: 100}, {}}
			for _, ago := range times {
				if i == servedParts-1-ago {
					p.Requests = 3600
				}
			}
		})
		return s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(1) }).decide(t)["cheap"]
	}
	once, twice := bursts(3), bursts(3, 9)
	if once.Replicas >= twice.Replicas {
		t.Errorf("%d replicas after one burst, %d after two", once.Replicas, twice.Replicas)
	}
	const want = "23 req/s came back within 1 h and keep their replicas"
	if got := twice.Reason.Detail(fleet.DetailBudget); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q at its end", got, want)
	}
	if got := once.Reason.Detail(fleet.DetailBudget); strings.Contains(got, "came back") {
		t.Errorf("%q after one burst", got)
	}
}

// Misses while replicas start do not count for the headroom; the reason has both shares.
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
		0.5:  "100 % within SLO over 1 h (with starts 90 %), objective 95 %: headroom ×0.70",
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
	bursty := demand{arrivals: fleet.Observed(5), parts: hourOf(0, 2, 8, 2, 8, 2, 8), partLength: partLength, bursts: fleet.Observed(30)}
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
	if got := (&demand{parts: step.parts, partLength: partLength}).lasted(epoch); got != 0 {
		t.Errorf("without a rate: %v, want 0", got)
	}
}

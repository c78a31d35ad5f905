package planner

import (
	"fmt"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// A burst is that of the source of the rate: a gateway without requests, and engines with a burst.
func TestIdleGatewayHidesNoBurst(t *testing.T) {
	burst := func() *scenario {
		return newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})).load(func(l *fleet.Load) {
			l.RecentArrivals, l.RecentError = fleet.Observed(40), fleet.Observed(2)
		})
	}
	want := burst().decide(t)["cheap"].Replicas
	s := burst().gateway(0, 0)
	g := &s.Loads[len(s.Loads)-1]
	g.RecentArrivals, g.RecentError = fleet.Observed(0), fleet.Observed(0)
	if d := s.decide(t)["cheap"]; d.Replicas != want {
		t.Errorf("%d replicas beside an idle gateway, want %d: %v", d.Replicas, want, d.Reason)
	}
}

// The requests of silent replicas are among those that a gateway counts.
func TestGatewayCountsRequestsOfSilentReplicas(t *testing.T) {
	s := newScenario(cheap(group{ready: 20, running: 50, kv: 0.5, rate: 5, max: 40})).gateway(0, 100)
	s.Usages = s.Usages[2:]
	if got := Plan(s.Snapshot, Policy{}).Models[0].Arrivals.Or(0); got != 100 {
		t.Errorf("%v req/s, and the gateway counted 100", got)
	}
}

// Another gateway, which is not scraped, has the other requests.
func TestGatewayThatMissesRequestsLowersNoDemand(t *testing.T) {
	// of 48; a few requests that wait are no queue after which engines serve more than arrives
	for _, test := range []struct{ queued, now, peak float64 }{{0, 26.4, 26.4}, {0, 0.5, 40}, {0, 42, 42}, {4, 10, 10}} {
		s := newScenario(cheap(group{ready: 4, running: 96, kv: 0.86, rate: 12})).gateway(test.queued, test.now)
		s.Loads[len(s.Loads)-1].PeakArrivals = fleet.Observed(test.peak)
		if got := Plan(s.Snapshot, Policy{}).Models[0].Arrivals.Or(0); got != 48 {
			t.Errorf("%v req/s at the gateway, peak %v: %v req/s, want the 48 that engines serve", test.now, test.peak, got)
		}
	}
}

// Of two rows of one time the higher one counts, in any order.
func TestOrderOfRowsOfOneTimeDoesNotMatter(t *testing.T) {
	decide := func(rates ...float64) string {
		s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}))
		s.gateway(0, rates[0])
		second := s.Loads[len(s.Loads)-1]
		second.Arrivals, second.PeakArrivals = fleet.Observed(rates[1]), fleet.Observed(rates[1])
		s.Loads = append(s.Loads, second)
		row := s.Usages[0]
		row.FirstTokens = fleet.Observed(rates[0])
		other := row
		other.FirstTokens = fleet.Observed(rates[1])
		s.Usages = append([]fleet.Usage{row, other}, s.Usages[1:]...)
		d := s.decide(t)["cheap"]
		return fmt.Sprintf("%d: %s", d.Replicas, d.Reason)
	}
	if up, down := decide(5, 30), decide(30, 5); up != down {
		t.Errorf("%s\n%s", up, down)
	}
}

package planner

import (
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func TestAcceleratorThatNodesToldIsKeptUntilAReplicaShowsAnother(t *testing.T) {
	for name, test := range map[string]struct {
		g    group
		last fleet.Accelerator
		want fleet.Accelerator
	}{
		"at zero":                           {group{}, "L40S", "L40S"},
		"while its first replica loads":     {group{loading: 1}, "L40S", "L40S"},
		"where its workload is not seen":    {group{absent: true}, "L40S", "L40S"},
		"nothing was known":                 {group{}, "", ""},
		"ready replicas do not tell one":    {group{ready: 1, running: 1, kv: 0.1, rate: 1}, "L40S", ""},
		"it is known":                       {group{accelerator: "H100"}, "L40S", "H100"},
		"of a faulty variant":               {group{variant: faulty}, "L40S", "L40S"},
		"of a variant in a foreign hand":    {group{workload: foreign}, "L40S", "L40S"},
		"of a variant that is only advised": {group{variant: advisory}, "L40S", "L40S"},
	} {
		t.Run(name, func(t *testing.T) {
			test.g.name, test.g.cost, test.g.max = "v", 1, 3
			s := newScenario(test.g)
			s.Previous = []fleet.PreviousDecision{{Variant: s.Variants[0].ID, Accelerator: test.last}}
			for range 2 { // as long as it lasts
				plan := Plan(s.Snapshot, Policy{})
				facts := fleet.Facts{}
				for _, d := range plan.Decisions {
					facts = d.Facts
				}
				for _, a := range plan.Recommendations {
					facts = a.Facts
				}
				if facts.Accelerator != test.want {
					t.Errorf("accelerator %q, want %q", facts.Accelerator, test.want)
				}
				s.Previous = plan.Previous()
			}
		})
	}
}

func TestRowThatOnlyRecallsAnAcceleratorIsNoStandingNumber(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, mute: true}))
	s.Previous = []fleet.PreviousDecision{{Variant: s.Variants[0].ID, Accelerator: "L40S"}}
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeMetricsMissing)
	if !d.Decided.IsZero() || !d.Changed.IsZero() {
		t.Errorf("%+v, want it never decided", d)
	}
	s.Previous[0].Decided = epoch.Add(-time.Minute)
	expect(t, s.decide(t)["cheap"], 0, fleet.CodeMetricsMissing)
}

package planner

import (
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func TestAcceleratorIsRememberedUntilAReplicaShowsAnother(t *testing.T) {
	for name, test := range map[string]struct {
		g    group
		last fleet.Accelerator
		want fleet.Accelerator
	}{
		"at zero":                        {group{}, "L40S", "L40S"},
		"while its first replica starts": {group{loading: 1}, "L40S", "L40S"},
		"without a target":               {group{absent: true}, "L40S", "L40S"},
		"nothing was known":              {group{}, "", ""},
		"ready replicas show none":       {group{ready: 1, running: 1, kv: 0.1, rate: 1}, "L40S", ""},
		"it is known":                    {group{accelerator: "H100"}, "L40S", "H100"},
		"of an invalid variant":          {group{variant: invalid}, "L40S", "L40S"},
		"of a variant with another HPA":  {group{workload: otherHPA}, "L40S", "L40S"},
		"of a variant in dry run":        {group{variant: dryRun}, "L40S", "L40S"},
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

func TestRememberedAcceleratorIsNoPreviousDecision(t *testing.T) {
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

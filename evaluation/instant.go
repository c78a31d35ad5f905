package evaluation

import (
	"context"
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// instant starts replicas at the instant at which the load rises, and none before. It knows the
// replicas that each minute needs at its beginning, without any delay of metrics, and stops
// replicas with all foresight. Its misses are those of a policy that neither predicts a rise nor
// has spare replicas for it. Its knob multiplies the replicas: the cost of spare ones.
func instant() Policy {
	return Policy{
		Name:    "instant",
		Summary: "starts the right number at each rise, at once but never before it, for comparison only",
		Knob: Knob{
			Name:    "times the replicas",
			Default: func(Case, Choice) float64 { return 1 },
			Values:  fixed(1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5),
		},
		Choices: eachVariant,
		Initial: func(c Case, s Setting) map[fleet.VariantID]int {
			plan, err := instantPlan(c, s)
			if err != nil {
				return nil // Start returns the error
			}
			return map[fleet.VariantID]int{plan.variant: plan.at(0)}
		},
		Start: func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
			return instantPlan(c, s)
		},
	}
}

// instantPlan returns the plan of a setting: that with the highest attainment, by minute.
func instantPlan(c Case, s Setting) (p atOnce, err error) {
	t := newTableBefore(c, s.Choice, 0)
	id := s.Choice.Variants[0]
	p = atOnce{variant: id, times: s.Knob, most: c.Setup.variant(id).Range.Max, begin: c.WarmUp}
	p.plan, _, err = t.scheduleFor(t.highest())
	return p, err
}

// atOnce carries out a plan without a lead.
type atOnce struct {
	variant fleet.VariantID
	plan    []int // replicas by minute
	times   float64
	most    int
	begin   float64 // of the plan, in the fleet's time
}

func (a atOnce) at(now float64) int {
	n := a.plan[min(int(max(0, now-a.begin)/minute), len(a.plan)-1)]
	return min(a.most, int(math.Ceil(a.times*float64(n))))
}

// Step implements [Controller].
func (a atOnce) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	return f.Now() + clairvoyantStep, f.Scale(a.variant, a.at(f.Now()))
}

// Close implements [Controller].
func (atOnce) Close() error { return nil }

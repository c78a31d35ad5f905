package evaluation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// syncDelay is how long after a scrape an HPA syncs with its values, in seconds.
const syncDelay = 7.0

// metric is the total of a variant that an HPA divides by its target, at a scrape.
type metric func(*simulation.Fleet, fleet.VariantID) float64

// hpaPolicy completes a policy that is a ScaledObject of one variant on one metric, whose HPA has
// the default behavior. Such objects keep at least one replica: at zero, no engine reports
// anything.
func hpaPolicy(p Policy, newMetric func() metric) Policy {
	p.Choices = eachVariant
	p.Initial = func(c Case, s Setting) map[fleet.VariantID]int {
		v := c.Setup.variant(s.Choice.Variants[0])
		return map[fleet.VariantID]int{v.ID: max(1, v.Range.Min)}
	}
	p.Start = func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
		v := c.Setup.variant(s.Choice.Variants[0])
		hpa, err := simulation.NewHPA(simulation.HPASpec{Min: max(1, v.Range.Min), Max: v.Range.Max, Target: s.Knob})
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.ID, err)
		}
		return &hpaController{variant: v.ID, hpa: hpa, metric: newMetric()}, nil
	}
	return p
}

// hpaController scrapes every 15 s from 0 s on, and syncs 7 s after each scrape.
type hpaController struct {
	variant fleet.VariantID
	hpa     *simulation.HPA
	metric  metric
	scraped float64
	syncing bool // the next step is a sync
}

// Step implements [Controller].
func (h *hpaController) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	if !h.syncing {
		h.scraped, h.syncing = h.metric(f, h.variant), true
		return f.Now() + syncDelay, nil
	}
	h.syncing = false
	current := stateOf(f, h.variant).Replicas
	if replicas := h.hpa.Decide(f.Now(), current, h.scraped); replicas != current {
		if err := f.Scale(h.variant, replicas); err != nil {
			return 0, err
		}
	}
	return f.Now() + simulation.HPASync - syncDelay, nil
}

// Close implements [Controller].
func (*hpaController) Close() error { return nil }

// stateOf returns the state of a variant.
func stateOf(f *simulation.Fleet, id fleet.VariantID) simulation.State {
	states := f.States()
	return states[slices.IndexFunc(states, func(s simulation.State) bool { return s.Variant == id })]
}

// fixed returns the values of a knob that are the same for every case.
func fixed(values ...float64) func(Case, Choice) []float64 {
	return func(Case, Choice) []float64 { return values }
}

// value returns a default that is the same for every case.
func value(v float64) func(Case, Choice) float64 { return func(Case, Choice) float64 { return v } }

// threeDigits rounds to three significant digits, so that tables show the value that was run.
func threeDigits(v float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

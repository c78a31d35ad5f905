package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// sizing is one model with its demand, the capacity of a replica of each variant, and the need that
// results.
type sizing struct {
	model   *model
	demand  demand
	margin  float64  // of a scale-down
	choices []choice // the variants that can be decided
	need    need
}

// choice is one variant and the capacity of a replica of it.
type choice struct {
	*variant
	capacity analyzer.Capacity
	share    float64       // of the reference demand; 0 if unknown
	pays     time.Duration // running time that costs as much as a start
}

// sizingPolicy is the policy, and how many answers may be simulated; nil means none.
type sizingPolicy struct {
	Policy
	simulations *int
}

// newSizing calculates the need of a model. Variants whose workload was not seen are held: their
// replicas may exist, and their load is part of the measured demand, so the others are sized for
// all of it.
func newSizing(x *index, m *model, d demand, p sizingPolicy) (*sizing, []fleet.Decision) {
	var seen []*variant
	var held []fleet.Decision
	for _, v := range m.variants {
		if v.seen {
			seen = append(seen, v)
			continue
		}
		why := reason(fleet.CodeTargetNotFound, "%s not found", v.Target).With(fleet.DetailRemedy, "check scaleTargetRef, and that the workload exists")
		held = append(held, x.hold(v, why))
	}
	z := &sizing{model: m, demand: d, margin: m.margin(p.Policy), choices: x.choices(seen, d, p)}
	z.need = z.work()
	return z, held
}

// choices calculates the capacity of a replica of each variant.
func (x *index) choices(variants []*variant, d demand, p sizingPolicy) []choice {
	m := analyzer.Model{
		Rate: d.rate, InFlight: d.inFlight, PromptTokens: d.prompt, OutputTokens: d.output,
		Prompts: d.prompts, Outputs: d.outputs, PrefixHits: d.hits, Dispersion: d.bursts,
	}
	for _, v := range variants {
		m.Variants = append(m.Variants, analyzer.Variant{
			ID: v.ID, Replicas: v.replicas, Speed: x.accelerators[v.Accelerator].Speed * float64(max(1, v.GPUsPerReplica)),
			KVTokens: v.workload.KVTokens, MaxSequences: v.workload.MaxSequences, BatchedTokens: v.workload.BatchedTokens,
			Role: v.Role, Objective: v.Objective, Profile: v.profile,
		})
	}
	choices := make([]choice, len(variants))
	options := analyzer.Options{Saturation: p.Saturation, SaturationAlone: p.SaturationAlone, Memo: p.Memo, Simulations: p.simulations}
	for i, capacity := range analyzer.Analyze(m, options) {
		choices[i] = choice{variant: variants[i], capacity: capacity, pays: variants[i].workload.Startup + p.MinReplicaLifetime}
		if share, known := capacity.Share.Known(); known && share > 0 {
			choices[i].share = share
		}
	}
	return choices
}

// profileOf returns the profile of a variant: the one of its trigger, else the first row that
// matches; nil if none does. A replica of several accelerators whose arguments do not say how it
// splits the model is assumed to split it over all of them.
func (x *index) profileOf(v *variant) *fleet.Profile {
	if v.Profile.Alpha > 0 {
		return &fleet.Profile{Cost: v.Profile}
	}
	precision, split := cmp.Or(v.Precision, v.workload.Precision), cmp.Or(v.workload.TensorParallel, v.GPUsPerReplica)
	profile, found := x.profiles.Find(v.Model.Name, v.Accelerator, precision, split)
	if !found {
		return nil
	}
	return &profile
}

// margin returns the headroom of a scale-down: half of the policy's if all variants are sized for a
// percentile, which has a margin of its own.
func (m *model) margin(p Policy) float64 {
	sized := func(v *variant) bool { return v.profile != nil && (v.Objective.TTFT > 0 || v.Objective.ITL > 0) }
	if p.SaturationAlone || slices.ContainsFunc(m.variants, func(v *variant) bool { return !sized(v) }) {
		return p.ScaleDownHeadroom
	}
	return p.ScaleDownHeadroom / 2
}

// atZero reports whether the model has no current replicas.
func (z *sizing) atZero() bool {
	return !slices.ContainsFunc(z.choices, func(c choice) bool { return c.now > 0 })
}

// starts reports whether replicas are starting.
func (z *sizing) starts() bool {
	return slices.ContainsFunc(z.choices, func(c choice) bool { return c.starting > 0 })
}

func (z *sizing) overdue() bool {
	return slices.ContainsFunc(z.choices, func(c choice) bool { return c.overdue > 0 })
}

// committed returns the capacity of the replicas that are ready or starting, as a share of the
// reference.
func (z *sizing) committed() (share float64) {
	for i, c := range z.choices {
		share += float64(z.share(i) * float64(min(c.now, c.ready+c.starting)))
	}
	return share
}

// share returns the capacity of one replica of a variant as a share of the reference. If the need
// is one replica without demand, any replica meets it alone.
func (z *sizing) share(i int) float64 {
	if z.need.keepOne {
		return 1
	}
	return z.choices[i].share
}

// number returns the placeable replicas of a variant, within its range. While data are missing it
// keeps its current replicas, even if they do not fit: it may need them.
func (z *sizing) number(i, placed int) int {
	c := z.choices[i]
	if z.need.blocked == fleet.CodeMetricsMissing {
		placed = max(placed, c.now)
	}
	return c.Range.Clamp(placed)
}

// shown returns the capacity of one replica of a variant that its own replicas have shown. A
// capacity that is assumed from its arguments or from other variants is no reason to remove others.
func (z *sizing) shown(i int) float64 {
	if z.need.keepOne || z.choices[i].capacity.Shown() {
		return z.share(i)
	}
	return 0
}

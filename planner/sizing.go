package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// sizing is one model with what is asked of it, what a replica of each variant carries, and what is therefore needed.
type sizing struct {
	model   *model
	demand  demand
	margin  float64  // of a scale-down
	choices []choice // the variants that can be decided
	need    need
}

// choice is one variant and what a replica of it carries.
type choice struct {
	*variant
	capacity analyzer.Capacity
	share    float64       // of the reference demand; 0 where unknown
	pays     time.Duration // how much running time a start costs
}

// sizingPolicy is the policy, and how many answers may be simulated; nil is none.
type sizingPolicy struct {
	Policy
	simulations *int
}

// newSizing works out what is needed of a model. Variants whose workload was not seen are held: their replicas may exist, and
// what they carry is part of what was observed, so the others are sized for all of the demand.
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

// choices asks what a replica of each variant carries.
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

// profileOf returns what is known of a variant's engine: what its trigger says, else the first row that fits; nil where none does.
// A replica of several accelerators whose arguments do not say how it splits the model is taken to split it over all of them.
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

// margin returns by how much what is left after a scale-down exceeds the highest demand: half of the policy's where all that may
// run is sized for a percentile, which keeps a distance of its own.
func (m *model) margin(p Policy) float64 {
	sized := func(v *variant) bool { return v.profile != nil && (v.Objective.TTFT > 0 || v.Objective.ITL > 0) }
	if p.SaturationAlone || slices.ContainsFunc(m.variants, func(v *variant) bool { return !sized(v) }) {
		return p.ScaleDownHeadroom
	}
	return p.ScaleDownHeadroom / 2
}

// asleep reports whether no replica of the model is asked for.
func (z *sizing) asleep() bool {
	return !slices.ContainsFunc(z.choices, func(c choice) bool { return c.now > 0 })
}

// loads reports whether replicas are on their way.
func (z *sizing) loads() bool {
	return slices.ContainsFunc(z.choices, func(c choice) bool { return c.starting > 0 })
}

func (z *sizing) overdue() bool {
	return slices.ContainsFunc(z.choices, func(c choice) bool { return c.overdue > 0 })
}

// committed returns what the replicas carry that are ready or on their way, as a share of the reference.
func (z *sizing) committed() (share float64) {
	for i, c := range z.choices {
		share += float64(z.share(i) * float64(min(c.now, c.ready+c.starting)))
	}
	return share
}

// share returns what one replica of a variant carries of what is needed; of nothing but one replica, any carries all.
func (z *sizing) share(i int) float64 {
	if z.need.keepOne {
		return 1
	}
	return z.choices[i].share
}

// number returns the replicas of a variant for which there is room, within its range. While data are missing it has all that it had:
// it may need them, whether there is room or not.
func (z *sizing) number(i, placed int) int {
	c := z.choices[i]
	if z.need.blocked == fleet.CodeMetricsMissing {
		placed = max(placed, c.now)
	}
	return c.Range.Clamp(placed)
}

// shown returns what one replica of a variant carries by what its own replicas have shown. What is only assumed of it, by
// its arguments or its siblings, is no ground on which to take others away.
func (z *sizing) shown(i int) float64 {
	if z.need.keepOne || z.choices[i].capacity.Shown() {
		return z.share(i)
	}
	return 0
}

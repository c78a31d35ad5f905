package evaluation

import (
	"context"
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// throughputInterval is how often NVIDIA Dynamo's planner decides, in seconds
// (throughput_adjustment_interval 180).
const throughputInterval = 180.0

// throughput decides in the manner of the throughput mode of NVIDIA Dynamo's planner
// (components/planner, "Planner Design"): every 180 s it divides the load that it predicts by the
// rate that an engine's profile allows within the latency limits, at mean lengths. The predicted
// load is that of the last interval (the predictor "constant"). Engines do prefill and decode, and
// the profile is that of the simulated engine itself; factors that correct it are left out.
func throughput() Policy {
	return Policy{
		Name:    "throughput",
		Summary: "requests of the last 180 s over the rate of a profile (NVIDIA Dynamo's planner)",
		Knob: Knob{
			Name: "share of the profile's rate", Default: value(1),
			Values: fixed(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25),
		},
		Choices: eachVariant,
		Initial: leastReplicas,
		Start: func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
			id := s.Choice.Variants[0]
			return &throughputController{variant: c.Setup.variant(id), engine: specOf(c.Setup, id), share: s.Knob}, nil
		},
	}
}

// specOf returns the hardware of a variant.
func specOf(s Setup, id fleet.VariantID) simulation.VariantSpec {
	for _, v := range s.Fleet.Variants {
		if v.ID == id {
			return v
		}
	}
	return simulation.VariantSpec{}
}

// throughputController decides every interval.
type throughputController struct {
	variant        fleet.Variant
	engine         simulation.VariantSpec
	share          float64
	arrived, ended int // requests before the interval
	prompt, output float64
}

// Step implements [Controller].
func (t *throughputController) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	next := f.Now() + throughputInterval
	arrived := 0
	for _, tally := range f.Tallies() {
		arrived += tally.Arrived
	}
	rate := float64(arrived-t.arrived) / throughputInterval
	t.arrived = arrived
	t.observeLengths(f.Outcomes())
	if f.Now() == 0 || t.output == 0 {
		return next, nil
	}
	each := t.share * engineRate(t.engine, t.prompt, t.output, t.variant.Objective.ITL.Seconds())
	replicas := int(min(math.Ceil(rate/each), float64(t.variant.Range.Max)))
	return next, f.Scale(t.variant.ID, max(replicas, 1, t.variant.Range.Min))
}

// Close implements [Controller].
func (*throughputController) Close() error { return nil }

// observeLengths sets the mean lengths to those of the requests that were served in the interval,
// if there were any.
func (t *throughputController) observeLengths(outcomes []simulation.Outcome) {
	var prompt, output, n float64
	for _, o := range outcomes[t.ended:] {
		if o.Loss == simulation.Served {
			prompt, output, n = prompt+float64(o.Prompt), output+float64(o.Output), n+1
		}
	}
	t.ended = len(outcomes)
	if n > 0 {
		t.prompt, t.output = prompt/n, output/n
	}
}

// defaultSequences is max_num_seqs of a simulated engine that sets none.
const defaultSequences = 256

// engineRate returns the requests per second that an engine serves in a steady state in which all
// requests have the mean lengths: the largest batch whose iteration takes at most the limit on ITL,
// in seconds, with the prefills that go with it. If none does, it is a batch of one. A limit of 0
// is none. Queues do not count, as in the planner's profiles.
func engineRate(v simulation.VariantSpec, prompt, output, itl float64) float64 {
	p := v.Profile
	kv, sequences := float64(v.KVTokens), float64(v.MaxSequences)
	if kv == 0 {
		kv = float64(p.KVTokens)
	}
	if sequences == 0 {
		sequences = defaultSequences
	}
	prefill := p.PerPromptToken*prompt + p.PerPromptTokenSquared*prompt*prompt + p.PerRequest
	token := p.PerSequence + p.PerRequest + p.PerContextToken*(prompt+output/2) + prefill/output
	most := max(1, math.Floor(min(sequences, kv/(prompt+output))))
	if itl > 0 {
		most = max(1, min(most, math.Floor((itl-p.Iteration)/token)))
	}
	return most / output / (p.Iteration + most*token)
}

package evaluation

import (
	"context"
	"math"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// The defaults of Knative's autoscaler (config-autoscaler of Knative Serving 1.x).
const (
	kpaTick         = 2.0  // tick-interval, in seconds
	kpaStable       = 60.0 // stable-window, in seconds
	kpaPanic        = 6.0  // panic-window-percentage 10, in seconds
	kpaThreshold    = 2.0  // panic-threshold-percentage 200
	kpaMostUp       = 1000 // max-scale-up-rate
	kpaMostDown     = 2.0  // max-scale-down-rate
	kpaTarget       = 70.0 // 70 % of container-concurrency-target-default 100
	kpaSampleSecond = 1.0  // queue proxies report the concurrency of each second
)

// kpa is Knative's pod autoscaler on concurrency (pkg/autoscaler/scaling/autoscaler.go): the
// requests in flight of the whole service, those that wait in front of it included, over a target.
// Their mean over 60 s counts, or that over 6 s while it is high: from twice the ready replicas on
// and for 60 s after, replicas are only added. It writes the scale itself, without an HPA.
func kpa() Policy {
	return Policy{
		Name:    "kpa",
		Summary: "Knative's autoscaler: requests in flight per replica over 60 s, or 6 s in panic",
		Knob: Knob{
			Name: "in flight per replica", Default: value(kpaTarget),
			Values: fixed(2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128),
		},
		Choices: eachVariant,
		Initial: leastReplicas,
		Start: func(c Case, s Setting, _ *simulation.Fleet) (Controller, error) {
			v := c.Setup.variant(s.Choice.Variants[0])
			return &kpaController{variant: v, rule: kpaRule{target: s.Knob}}, nil
		},
	}
}

// leastReplicas starts the first variant of a choice at its minimum, which is at least one.
func leastReplicas(c Case, s Setting) map[fleet.VariantID]int {
	v := c.Setup.variant(s.Choice.Variants[0])
	return map[fleet.VariantID]int{v.ID: max(1, v.Range.Min)}
}

// kpaController samples every second and decides at every tick.
type kpaController struct {
	variant fleet.Variant
	rule    kpaRule
	decided float64
}

// Step implements [Controller].
func (k *kpaController) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	next := f.Now() + kpaSampleSecond
	k.rule.observe(float64(open(f)))
	if f.Now()-k.decided < kpaTick {
		return next, nil
	}
	k.decided = f.Now()
	state := stateOf(f, k.variant.ID)
	replicas := min(max(k.rule.decide(f.Now(), state.Ready), 1, k.variant.Range.Min), k.variant.Range.Max)
	if replicas == state.Replicas {
		return next, nil
	}
	return next, f.Scale(k.variant.ID, replicas)
}

// Close implements [Controller].
func (*kpaController) Close() error { return nil }

// kpaRule is the decision with its history.
type kpaRule struct {
	target   float64   // requests in flight per replica
	inFlight []float64 // of each second of the stable window, the latest last
	panicked bool
	since    float64 // when the threshold was last exceeded, in panic
	most     int     // replicas, in panic
}

// observe adds the requests in flight of a second.
func (k *kpaRule) observe(inFlight float64) {
	k.inFlight = append(k.inFlight, inFlight)
	k.inFlight = k.inFlight[max(0, len(k.inFlight)-int(kpaStable/kpaSampleSecond)):]
}

// decide returns the replicas at a time, given those that are ready.
func (k *kpaRule) decide(now float64, ready int) int {
	current := max(1, float64(ready))
	wanted := func(window float64) float64 { return math.Ceil(k.mean(window) / k.target) }
	limited := func(replicas float64) int {
		return int(min(max(replicas, math.Floor(current/kpaMostDown)), math.Ceil(current*kpaMostUp)))
	}
	stable, short := wanted(kpaStable), wanted(kpaPanic)
	switch exceeded := short/current >= kpaThreshold; {
	case exceeded:
		k.panicked, k.since = true, now
	case k.panicked && k.since+kpaStable < now:
		k.panicked, k.most = false, 0
	}
	if !k.panicked {
		return limited(stable)
	}
	k.most = max(k.most, limited(stable), limited(short))
	return k.most
}

// mean returns the mean of the latest seconds.
func (k *kpaRule) mean(window float64) float64 {
	latest := k.inFlight[max(0, len(k.inFlight)-int(window/kpaSampleSecond)):]
	sum := 0.0
	for _, v := range latest {
		sum += v
	}
	return sum / float64(max(1, len(latest)))
}

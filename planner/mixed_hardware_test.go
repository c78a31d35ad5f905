package planner

import (
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Profiles of an 8B model on an H100 and on an L40S, which needs 21.8 ms for an iteration without
// any work.
var (
	onH100 = fleet.EngineCost{Alpha: 6.07, Beta: 0.034, Gamma: 0.0424, Prefill: 0.0134, PrefillSquared: 0.829}
	onL40S = fleet.EngineCost{Alpha: 21.8, Beta: 0.0526, Gamma: 0.197, Prefill: 0.0417, PrefillSquared: 3.45}
)

// balanced returns the metrics of a replica that serves this rate of requests of 1,000 and 200
// tokens: an iteration takes its fixed time divided by the share of time that is left beside the
// work.
func balanced(cost fleet.EngineCost, rate float64) func(*fleet.Usage) {
	return func(u *fleet.Usage) {
		prompt := cost.Prefill*1000 + cost.PrefillSquared*2
		work := prompt + cost.Beta*200 + cost.Gamma*200*1.1
		itl := cost.Alpha / (1 - min(rate*work/1e3, 0.9)) / 1e3
		u.MeanRate, u.MeanITL, u.ITL = fleet.Observed(rate), fleet.Observed(itl), fleet.Observed(itl)
		u.MeanKV, u.MeanPrefill, u.ITLFloor = fleet.Observed(0.1), fleet.Observed(itl+prompt/1e3), fleet.Observed(cost.Alpha/1e3)
	}
}

// h100AndL40S is a model on H100 and L40S with an ITL objective, and the rate of each replica.
func h100AndL40S(h100, l40s int, each [2]float64, itl time.Duration) *scenario {
	s := newScenario(
		group{name: "h100", cost: 3, max: 30, accelerator: "H100", ready: h100, running: 20, kv: 0.1, rate: each[0], usage: balanced(onH100, each[0])},
		group{name: "l40s", cost: 1, max: 20, accelerator: "L40S", ready: l40s, running: 10, kv: 0.1, rate: each[1], usage: balanced(onL40S, each[1])},
	)
	for i, cost := range []fleet.EngineCost{onH100, onL40S} {
		s.Variants[i].Objective = fleet.Objective{TTFT: 2 * time.Second, ITL: itl, Percentile: 0.95}
		s.Variants[i].Profile = cost
	}
	return s.measuredLengths()
}

func TestInfeasibleVariantDoesNotScaleDownTheOthers(t *testing.T) {
	for _, itl := range []time.Duration{12 * time.Millisecond, 19 * time.Millisecond, 22 * time.Millisecond, 23 * time.Millisecond, 24 * time.Millisecond, 26 * time.Millisecond, 30 * time.Millisecond} {
		d := h100AndL40S(10, 1, [2]float64{8, 1}, itl).decide(t)
		if d["h100"].Replicas > 14 || d["l40s"].Replicas > 1 {
			t.Errorf("within %v: %d H100 (%s) and %d L40S (%s), want about the ten that serve", itl,
				d["h100"].Replicas, d["h100"].Reason.String(), d["l40s"].Replicas, d["l40s"].Reason.String())
		}
	}
}

func TestOverloadedVariantIsReplacedByAFeasibleOne(t *testing.T) {
	for _, itl := range []time.Duration{12 * time.Millisecond, 18 * time.Millisecond, 23 * time.Millisecond, 26 * time.Millisecond} {
		d := h100AndL40S(0, 4, [2]float64{0, 2.5}, itl).decide(t)
		if n := d["h100"].Replicas; n < 1 || n > 3 {
			t.Errorf("within %v: %d H100 for 10 requests/s: %s", itl, n, d["h100"].Reason.String())
		}
		if n := d["l40s"].Replicas; n > 4 {
			t.Errorf("within %v: %d L40S: %s", itl, n, d["l40s"].Reason.String())
		}
	}
}

func TestInfeasibleVariantIsNotScaledUpInAShortage(t *testing.T) {
	s := h100AndL40S(10, 1, [2]float64{8, 1}, 12*time.Millisecond).gateway(0, 800)
	if d := s.decide(t)["l40s"]; d.Replicas > 1 {
		t.Errorf("%d L40S: %s", d.Replicas, d.Reason.String())
	}
}

// One H100 beside the L40S would be enough for 24 requests per second if the L40S got no more of
// them than it can serve. But for each request in flight on the H100 it gets as many as now.
func TestScaleDownLeavesEnoughAtTheLoadSplit(t *testing.T) {
	scenario := func(h100, l40s float64) *scenario {
		s := h100AndL40S(2, 1, [2]float64{h100, l40s}, 40*time.Millisecond)
		s.Variants[1].Range.Min = 1
		return s
	}
	if d := scenario(10.95, 2).decide(t)["h100"]; d.Replicas != 2 || d.Reason.Code != fleet.CodeMakeBeforeBreak {
		t.Errorf("%d replicas, %s, want both kept", d.Replicas, d.Reason.String())
	}
	if d := scenario(8, 1.4).decide(t)["h100"]; d.Replicas != 1 {
		t.Errorf("%d replicas, %s, want a scale-down at a lighter load", d.Replicas, d.Reason.String())
	}
}

func TestInfeasibleTTFTDoesNotBlockScaleDown(t *testing.T) {
	s := h100AndL40S(20, 0, [2]float64{0.5, 0}, 100*time.Millisecond).load(func(l *fleet.Load) { l.TTFT = fleet.Observed(0.04) })
	s.Variants[0].Objective.TTFT = 2 * time.Millisecond
	s.Variants[1].Objective.TTFT = 2 * time.Millisecond
	if d := s.decide(t)["h100"]; d.Replicas >= 20 || d.Facts.Infeasible == "" {
		t.Errorf("%+v, want a scale-down, and the objective infeasible", d)
	}
}

func TestLengthsAreThoseOfTheBusiestName(t *testing.T) {
	replicas := func(other string) int {
		s := newScenario(fast(group{ready: 3, running: 20, kv: 0.1, rate: 7, max: 50}))
		v := s.Variants[0]
		v.ID.Name, v.Target.Name, v.ServedName = "other", "other", other
		s.Variants = append(s.Variants, v)
		s.Workloads = append(s.Workloads, fleet.Workload{ID: v.Target})
		s.Loads = append(s.Loads, fleet.Load{
			Namespace: "shop", Model: other, Source: fleet.SourceEngine, Time: epoch, PeakArrivals: fleet.Observed(0.01), PeakCovered: true,
			LastActive: epoch, IdleCovered: 10 * time.Minute, PromptTokens: fleet.Observed(30_000), OutputTokens: fleet.Observed(20),
		})
		s.profiled(time.Second, 25*time.Millisecond)
		d := s.decide(t)
		return d["fast"].Replicas + d["other"].Replicas
	}
	if first, last := replicas("aaa"), replicas("zzz"); first != last || first > 6 {
		t.Errorf("%d replicas beside a rare name that comes first, %d beside one that comes last", first, last)
	}
}

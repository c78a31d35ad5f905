package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// exactly returns parts whose misses are known without a range.
func exactly(parts []budgetPart) []budgetPart {
	for i := range parts {
		parts[i].fewest, parts[i].most = parts[i].missed, parts[i].missed
	}
	return parts
}

// TestObjectiveIsMetAtTheMaximum has a model that lacks a twentieth of its capacity, and changes
// one thing at a time.
func TestObjectiveIsMetAtTheMaximum(t *testing.T) {
	objective := fleet.Objective{TTFT: time.Second, ITL: 40 * time.Millisecond, Percentile: 0.95}
	for name, test := range map[string]struct {
		change func(e *explanation)
		met    bool
	}{
		"as it is":                       {func(*explanation) {}, true},
		"a request waits at each":        {func(e *explanation) { e.demand.backlog = 4 }, true},
		"more wait, at engines":          {func(e *explanation) { e.demand.backlog = 16 }, false},
		"a burst":                        {func(e *explanation) { e.demand.burst = 95 }, false},
		"a saturated replica":            {func(e *explanation) { e.candidates[0].saturated = 1 }, false},
		"half of the demand is unserved": {func(e *explanation) { e.short = 0.5 }, false},
		"mean ITL above the objective":   {func(e *explanation) { e.demand.itl = fleet.Observed(0.05) }, false},
		"the hour missed":                {func(e *explanation) { e.demand.parts = exactly(hourOf(0.06, 50)) }, false},
		"the last minutes missed": {func(e *explanation) {
			last := &e.demand.parts[partsOfWindow-1]
			last.missed, last.most = last.requests, last.requests
		}, false},
		"bounds within a wide bucket":  {func(e *explanation) { e.demand.parts[3].most = e.demand.parts[3].requests * 20 }, false},
		"few requests":                 {func(e *explanation) { e.demand.parts = exactly(hourOf(0, 0.01)) }, false},
		"none":                         {func(e *explanation) { e.demand.parts = nil }, false},
		"parts that are old":           {func(e *explanation) { e.round.now = epoch.Add(10 * time.Minute) }, false},
		"variants of other objectives": {func(e *explanation) { e.variants = append(e.variants, &variant{Variant: &fleet.Variant{}}) }, false},
	} {
		v := &variant{Variant: &fleet.Variant{Role: fleet.RoleBoth}, objective: objective, podCounts: podCounts{ready: 4}}
		e := explanation{
			sizedModel: &sizedModel{
				model: &model{variants: []*variant{v}, part: fleet.RoleBoth}, candidates: []candidate{{variant: v}},
				demand: demand{parts: exactly(hourOf(0.01, 50)), partLength: partLength, itl: fleet.Observed(0.02), ttft: fleet.Observed(0.5)},
			},
			round: &round{view: &view{now: epoch, policy: Policy{}.withDefaults()}}, short: 0.05,
		}
		if test.change(&e); e.isMet() != test.met {
			t.Errorf("%s: met %v, want %v", name, !test.met, test.met)
		}
	}
}

// The maximum is no reason while requests are served within the objective. The demand is 2 % beyond
// the capacity of ten replicas at 72 % of their KV cache.
func TestNoMaxReplicasWhileTheObjectiveIsMet(t *testing.T) {
	decide := func(within float64) fleet.Decision {
		g := cheap(group{ready: 10, running: 50, kv: 0.72, rate: 5, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) {
			p.Requests, p.Replicas, p.ITL = 9000, 10, itlOf(9000, within)
		})
		return s.load(func(l *fleet.Load) { l.ITL = fleet.Observed(0.02) }).decide(t)["cheap"]
	}
	if d := decide(1); d.Replicas != 10 || d.Reason.Code != fleet.CodeUnchanged || !strings.Contains(d.Reason.Text, "less headroom than wanted") {
		t.Errorf("%d %s: %s", d.Replicas, d.Reason.Code, d.Reason.Text)
	}
	if d := decide(0.9); d.Replicas != 10 || d.Reason.Code != fleet.CodeMaxReplicas {
		t.Errorf("a tenth missed the objective: %d %s: %s", d.Replicas, d.Reason.Code, d.Reason.Text)
	}
}

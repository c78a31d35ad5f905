package planner

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// profiled gives every variant an objective and a profile of an 8B model on an H100.
func (s *scenario) profiled(ttft, itl time.Duration) *scenario {
	for i := range s.Variants {
		v := &s.Variants[i]
		v.Objective = fleet.Objective{TTFT: ttft, ITL: itl, Percentile: 0.95}
		v.Profile = fleet.EngineCost{Alpha: 6.07, Beta: 0.034, Gamma: 0.0424, Prefill: 0.0134, PrefillSquared: 0.829}
	}
	return s
}

func role(r fleet.Role) func(*fleet.Variant) { return func(v *fleet.Variant) { v.Role = r } }

// prefillAndDecode is a model with disaggregated prefill and decode: each request is served by one
// replica of both.
func prefillAndDecode(prefill, decode group, arrivals float64) *scenario {
	prefill.name, prefill.variant, prefill.accelerator, prefill.cost = "prefill", role(fleet.RolePrefill), "H100", 4
	decode.name, decode.variant, decode.accelerator, decode.cost = "decode", role(fleet.RoleDecode), "H100", 4
	prefill.max, decode.max = 20, 20
	return newScenario(prefill, decode).gateway(0, arrivals).profiled(time.Second, 20*time.Millisecond)
}

func TestPrefillAndDecodeAreEachSizedForAllRequests(t *testing.T) {
	asked := func(arrivals float64) (prefill, decode int) {
		s := prefillAndDecode(group{ready: 1, running: 2, kv: 0.05, rate: 5}, group{ready: 1, running: 10, kv: 0.1, rate: 5}, arrivals)
		d := s.decide(t)
		return d["prefill"].Replicas, d["decode"].Replicas
	}
	prefill, decode := asked(100)
	if prefill < 2 || decode < 2 {
		t.Errorf("100 requests/s get %d replicas for prefill and %d for decode, want both scaled up", prefill, decode)
	}
	morePrefill, moreDecode := asked(200)
	if morePrefill <= prefill || moreDecode <= decode {
		t.Errorf("200 requests/s get %d and %d, 100 get %d and %d; want more of both", morePrefill, moreDecode, prefill, decode)
	}
}

func TestRequestsOfPrefillAndDecodeAreCountedOnce(t *testing.T) {
	s := prefillAndDecode(group{ready: 2, running: 2, kv: 0.05, rate: 5}, group{ready: 2, running: 10, kv: 0.1, rate: 5}, 0)
	s.Loads = s.Loads[:1] // no gateway
	plan := Plan(s.Snapshot, Policy{})
	if len(plan.Models) != 1 || plan.Models[0].Arrivals.Or(0) != 10 {
		t.Errorf("%+v, want one model with 10 requests/s", plan.Models)
	}
}

func TestPrefillAloneIsDecided(t *testing.T) {
	s := newScenario(group{name: "prefill", cost: 4, max: 9, accelerator: "H100", variant: role(fleet.RolePrefill), ready: 1, running: 2, kv: 0.05, rate: 30}).profiled(time.Second, 0)
	if d := s.decide(t)["prefill"]; d.Held || d.Replicas < 1 {
		t.Errorf("%+v, want it decided by itself", d)
	}
}

func TestMixedRolesAreHeldWithTheRemedy(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 20, kv: 0.2, rate: 3}), fast(group{ready: 1, running: 20, kv: 0.2, rate: 3, variant: role(fleet.RoleDecode)}))
	for name, d := range s.decide(t) {
		if !d.Held || d.Reason.Code != fleet.CodeInvalidDefinition || !strings.Contains(d.Reason.String(), "give all of them a role") {
			t.Errorf("%s: %+v, want it held with the remedy", name, d)
		}
	}
}

func TestPercentileObjectiveSizesFromZero(t *testing.T) {
	s := newScenario(cheap(group{}), fast(group{max: 9})).scaleToZero().gateway(300, 40).profiled(time.Second, 25*time.Millisecond)
	d := s.decide(t)
	if d["cheap"].Replicas+d["fast"].Replicas < 1 || !strings.Contains(d["cheap"].Reason.String()+d["fast"].Reason.String(), "40 req/s") {
		t.Errorf("%+v", d)
	}
}

func TestStricterObjectiveNeedsMoreReplicas(t *testing.T) {
	replicas := func(itl time.Duration) int {
		s := newScenario(fast(group{ready: 3, running: 20, kv: 0.1, rate: 10, max: 50})).gateway(0, 60).profiled(time.Second, itl)
		d := s.decide(t)["fast"]
		if !strings.Contains(d.Reason.String(), "profile") {
			t.Errorf("%s, want the profile named", d.Reason.String())
		}
		return d.Replicas
	}
	if loose, strict := replicas(40*time.Millisecond), replicas(12*time.Millisecond); loose >= strict {
		t.Errorf("%d replicas within 40 ms, %d within 12 ms", loose, strict)
	}
}

func TestInfeasibleObjectiveIsInTheReasonWithARemedy(t *testing.T) {
	s := newScenario(fast(group{ready: 2, running: 20, kv: 0.1, rate: 5, max: 50})).profiled(time.Second, 6*time.Millisecond)
	d := s.decide(t)["fast"]
	if d.Replicas > 3 || d.Facts.Infeasible == "" || d.Reason.Detail(fleet.DetailInfeasible) != d.Facts.Infeasible || !strings.Contains(d.Facts.Infeasible, "ITL 6 ms cannot be met") {
		t.Errorf("%+v, want no scale-up, and the objective infeasible", d)
	}
}

func TestSamePlanWithAMemo(t *testing.T) {
	s := prefillAndDecode(group{ready: 1, running: 2, kv: 0.05, rate: 5}, group{ready: 1, running: 10, kv: 0.1, rate: 5}, 100)
	memo, want := &analyzer.Memo{}, Plan(s.Snapshot, Policy{})
	for range 3 {
		if got := Plan(s.Snapshot, Policy{Memo: memo}); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v with a memo, %+v without", got, want)
		}
	}
}

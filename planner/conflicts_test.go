package planner

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// conflictsOf returns the conflicts of a scenario as "Type: variant variant".
func conflictsOf(t *testing.T, s *scenario) (found []string) {
	t.Helper()
	conflicts := Plan(s.Snapshot, Policy{}).Conflicts
	if !slices.IsSortedFunc(conflicts, fleet.Conflict.Compare) {
		t.Errorf("%+v are not sorted", conflicts)
	}
	for _, c := range conflicts {
		line := string(c.Type) + ":"
		for _, id := range c.Variants {
			line += " " + id.Name
		}
		if !strings.Contains(c.Text, "; ") {
			t.Errorf("%s: %q has no remedy", line, c.Text)
		}
		found = append(found, line)
	}
	return found
}

func expectConflicts(t *testing.T, s *scenario, want ...string) {
	t.Helper()
	if got := conflictsOf(t, s); !slices.Equal(got, want) {
		t.Errorf("conflicts %q, want %q", got, want)
	}
}

// alike are two variants of one model on one accelerator type; the second is the older one.
func alike(change func(newer, old *group)) *scenario {
	newer := group{name: "a", cost: 1, max: 9, accelerator: "L40S", ready: 1, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Minute)}
	old := newer
	old.name, old.created = "b", epoch.Add(-time.Hour)
	change(&newer, &old)
	return newScenario(newer, old)
}

func TestEveryConflictIsInThePlan(t *testing.T) {
	old := cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})
	second := group{name: "a-newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)}
	third := second
	third.name = "b-newer"
	for name, test := range map[string]struct {
		s    *scenario
		want []string
	}{
		"none":          {newScenario(old), nil},
		"two objects":   {newScenario(second, old), []string{"DuplicateTarget: a-newer cheap"}},
		"three objects": {newScenario(third, second, old), []string{"DuplicateTarget: a-newer b-newer cheap"}},
		"two triggers": {alike(func(_, b *group) {
			b.variant = func(v *fleet.Variant) { v.Triggers, v.Invalid = 2, problem("two", "remove one") }
		}), []string{"MultipleTriggers: b"}},
		"unsupported":  {alike(func(a, b *group) { a.variant, b.variant = unsupported, unsupported }), []string{"UnsupportedTrigger: a", "UnsupportedTrigger: b"}},
		"another HPA":  {alike(func(a, _ *group) { a.workload = otherHPA }), []string{"ConflictingHPA: a"}},
		"metadata":     {alike(func(a, _ *group) { a.cost = 2 }), []string{"InconsistentMetadata: a b"}},
		"all together": {newScenario(func() group { g := second; g.variant = unsupported; return g }(), func() group { g := old; g.workload = otherHPA; return g }()), []string{"ConflictingHPA: a-newer cheap", "DuplicateTarget: a-newer cheap", "UnsupportedTrigger: a-newer"}},
	} {
		t.Run(name, func(t *testing.T) { expectConflicts(t, test.s, test.want...) })
	}
}

func TestPriceOfTheOldestVariantIsUsed(t *testing.T) {
	s := alike(func(newer, old *group) {
		newer.cost, old.cost = 5, 2
		old.objective = 100 * time.Millisecond
	})
	d := s.decide(t)
	if d["a"].Facts.Cost != 2 || d["b"].Facts.Cost != 2 || d["a"].Held || d["b"].Held {
		t.Errorf("a %+v\nb %+v\nwant both decided with the price of the older one, 2", d["a"], d["b"])
	}
	text := Plan(s.Snapshot, Policy{}).Conflicts[0].Text
	if !strings.Contains(text, "variantCost 2 and 5") || !strings.Contains(text, "itl 100ms and 0s") || strings.Contains(text, "ttft") {
		t.Errorf("text %q, want both numbers of what differs, and nothing else", text)
	}
	t.Run("the first by name of two of one age", func(t *testing.T) {
		s := alike(func(a, b *group) { a.cost, b.cost, b.created = 5, 2, a.created })
		if d := s.decide(t); d["b"].Facts.Cost != 5 {
			t.Errorf("%+v, want the price of the first", d["b"])
		}
	})
	t.Run("an invalid one is not used", func(t *testing.T) {
		s := alike(func(_, b *group) {
			b.cost, b.variant = 2, func(v *fleet.Variant) { v.Invalid = problem("role: no", "write prefill") }
		})
		if d := s.decide(t); d["a"].Facts.Cost != 1 {
			t.Errorf("%+v, want its own price", d["a"])
		}
		expectConflicts(t, s)
	})
}

func TestOnlyVariantsOfOneReplicaTypeConflict(t *testing.T) {
	withPrice := func(change func(*fleet.Variant)) *scenario {
		return alike(func(a, _ *group) { a.cost, a.variant = 5, change })
	}
	for name, change := range map[string]func(*fleet.Variant){
		"another accelerator":   func(v *fleet.Variant) { v.Accelerator = "H100" },
		"more GPUs":             func(v *fleet.Variant) { v.GPUsPerReplica = 2 },
		"another service class": func(v *fleet.Variant) { v.ServiceClass = "batch" },
		"another model":         func(v *fleet.Variant) { v.Model.Name = "another" },
	} {
		t.Run(name, func(t *testing.T) { expectConflicts(t, withPrice(change)) })
	}
	t.Run("an unknown accelerator", func(t *testing.T) {
		expectConflicts(t, alike(func(a, b *group) { a.cost, a.accelerator, b.accelerator = 5, "", "" }))
	})
}

func TestOlderModelKeepsACollidingName(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Minute)}), fast(group{ready: 1, running: 60, kv: 0.6, rate: 20, created: epoch.Add(-time.Hour)}))
	s.Variants[1].Model.Name, s.Variants[1].ServedName = "zz-another", llama
	d := s.decide(t)
	expect(t, d["cheap"], 2, fleet.CodeInvalidDefinition)
	if d["fast"].Held {
		t.Errorf("%+v, want the older model decided", d["fast"])
	}
	expectConflicts(t, s, "InconsistentMetadata: cheap fast")
}

func TestTargetIsTheSameInAnyAPIVersion(t *testing.T) {
	old := cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})
	s := newScenario(group{name: "a-newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)}, old)
	s.Variants[0].Target.APIVersion = "apps/v1beta2"
	d := s.decide(t)
	expect(t, d["a-newer"], 2, fleet.CodeDuplicateTarget)
	expect(t, d["cheap"], 2, fleet.CodeUnchanged)
	t.Run("but not in another API group", func(t *testing.T) {
		s.Variants[0].Target.APIVersion = "apps.kruise.io/v1"
		if d := s.decide(t); d["a-newer"].Reason.Code != fleet.CodeTargetNotFound {
			t.Errorf("%+v, want a target of its own", d["a-newer"])
		}
	})
}

func TestOldestVariantOwnsItsTargetEvenIfInvalid(t *testing.T) {
	for name, test := range map[string]struct {
		owner func(*fleet.Variant)
		code  fleet.Code
	}{
		"invalid":     {func(v *fleet.Variant) { v.Invalid = problem("role: no", "write prefill") }, fleet.CodeInvalidDefinition},
		"unsupported": {unsupported, fleet.CodeUnsupportedTrigger},
		"paused":      {paused(fleet.Pause{All: true}), fleet.CodePaused},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(group{name: "a-newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)},
				cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour), variant: test.owner}))
			d := s.decide(t)
			expect(t, d["cheap"], 2, test.code)
			expect(t, d["a-newer"], 2, fleet.CodeDuplicateTarget)
			if d["a-newer"].Unsupported || d["a-newer"].Held != d["cheap"].Held {
				t.Errorf("%+v, want the owner's number, and not unsupported", d["a-newer"])
			}
		})
	}
	t.Run("a second claim that is unsupported", func(t *testing.T) {
		s := newScenario(group{name: "a-newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute), variant: unsupported},
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)}))
		d := s.decide(t)["a-newer"]
		expect(t, d, 2, fleet.CodeDuplicateTarget)
		if !d.Unsupported || d.Reason.Text != unsupportedProblem.Text || !strings.Contains(d.Reason.String(), "older ScaledObject") {
			t.Errorf("%+v, want it unsupported, with that first", d)
		}
	})
}

func TestVariantsWithoutATargetAreNoDuplicateClaim(t *testing.T) {
	job := func(v *fleet.Variant) { v.Unsupported, v.Target = unsupportedProblem, fleet.TargetID{} }
	s := newScenario(group{name: "a", cost: 1, max: 3, absent: true, variant: job}, group{name: "b", cost: 1, max: 3, absent: true, variant: job})
	d := s.decide(t)
	if d["a"].Reason.Code != fleet.CodeUnsupportedTrigger || d["b"].Reason.Code != fleet.CodeUnsupportedTrigger {
		t.Errorf("a %+v, b %+v, want both unsupported", d["a"], d["b"])
	}
}

func TestDecisionHasTheTimeOfTheLastChange(t *testing.T) {
	before := epoch.Add(-time.Hour)
	decided := func(s *scenario, replicas int) *scenario {
		s.Previous = append(s.Previous, fleet.PreviousDecision{
			Variant: fleet.VariantID{Namespace: "shop", Name: "cheap"}, Replicas: replicas, Decided: epoch.Add(-time.Minute), Changed: before, Delta: 7,
		})
		return s
	}
	calm := cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})
	for name, test := range map[string]struct {
		s       *scenario
		changed time.Time
		delta   int
	}{
		"unchanged": {decided(newScenario(calm), 3), before, 7},
		"changed":   {decided(newScenario(calm), 5), epoch, -2},
		"first decision, equal to current replicas": {newScenario(calm), time.Time{}, 0},
		"first decision, not current replicas":      {newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, min: 4})), epoch, 2},
		"a hold changes nothing":                    {decided(newScenario(cheap(group{ready: 3, mute: true})), 5), before, 7},
		"an unsupported trigger changes nothing":    {decided(newScenario(cheap(group{ready: 3, variant: unsupported})), 5), before, 7},
		"an annotation changes the number":          {decided(newScenario(cheap(group{ready: 3, variant: paused(fleet.Pause{All: true, Fixed: true, Replicas: 1})})), 3), epoch, -2},
		"a hold without a previous decision":        {newScenario(cheap(group{ready: 3, mute: true})), time.Time{}, 0},
	} {
		d := test.s.decide(t)["cheap"]
		if !d.Changed.Equal(test.changed) || d.Delta != test.delta {
			t.Errorf("%s: %d replicas changed at %v by %d, want %v by %d", name, d.Replicas, d.Changed, d.Delta, test.changed, test.delta)
		}
	}
}

func TestPlanWithConflictsIsTheSameInAnyOrderOfRows(t *testing.T) {
	var groups []group
	for i, change := range []func(*fleet.Variant){nil, unsupported, paused(fleet.Pause{All: true}), paused(fleet.Pause{Out: true}), paused(fleet.Pause{All: true, Fixed: true, Replicas: math.MaxInt32})} {
		name := string(rune('a' + i))
		groups = append(groups,
			group{name: name, cost: float64(1 + i), max: 9, accelerator: "L40S", ready: i, running: 60, kv: 0.6, rate: 5, variant: change, created: epoch.Add(time.Duration(i%3) * -time.Hour)},
			group{name: name + "-again", cost: 1, max: 9, claims: name, variant: change})
	}
	s := newScenario(groups...)
	s.Workloads[0].ConflictingHPA = "cpu"
	want := Plan(s.Snapshot, Policy{})
	slices.Reverse(s.Variants)
	slices.Reverse(s.Workloads)
	slices.Reverse(s.Usages)
	expectSame(t, Plan(s.Snapshot, Policy{}), want)
}

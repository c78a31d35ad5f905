package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

var unsupportedProblem = fleet.Problem{
	Text: "metricType \"Value\" of trigger 0: the HPA would not apply the number as replicas", Remedy: "remove metricType from the trigger",
}

func unsupported(v *fleet.Variant) { v.Unsupported = unsupportedProblem }

func invalid(v *fleet.Variant) {
	v.Invalid = problem("variantCost \"cheap\" is not a decimal number", "write digits only")
}

func otherHPA(w *fleet.Workload) { w.ConflictingHPA = "cpu" }

func paused(p fleet.Pause) func(*fleet.Variant) {
	return func(v *fleet.Variant) { v.Pause = p }
}

func TestUnsupportedVariantIsHeldAtCurrentReplicas(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 1, kv: 0.01, rate: 0.1, variant: unsupported})).previous("cheap", 9, time.Minute)
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeUnsupportedTrigger)
	if !d.Held || !d.Unsupported || d.Reason.String() != unsupportedProblem.String() {
		t.Errorf("%+v, want it held and unsupported, with that reason", d)
	}
	t.Run("also while its metrics are missing", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 3, mute: true, variant: unsupported})).decide(t)["cheap"]
		expect(t, d, 3, fleet.CodeUnsupportedTrigger)
	})
	t.Run("also if its definition is invalid", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 3, variant: unsupported}))
		s.Variants[0].Invalid = problem("role: no", "write prefill")
		d := s.decide(t)["cheap"]
		expect(t, d, 3, fleet.CodeUnsupportedTrigger)
		if !d.Unsupported {
			t.Errorf("%+v, want it unsupported", d)
		}
	})
	t.Run("at an unknown number without a target, as for a ScaledJob", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}), group{name: "job", cost: 1, max: 3, absent: true, variant: func(v *fleet.Variant) {
			v.Unsupported, v.Target = unsupportedProblem, fleet.TargetID{}
		}})
		d := s.decide(t)
		if job := d["job"]; job.Known || !job.Held || !job.Unsupported || job.Reason.Code != fleet.CodeUnsupportedTrigger {
			t.Errorf("%+v, want it unsupported at an unknown number", job)
		}
		expect(t, d["cheap"], 2, fleet.CodeUnchanged)
	})
}

// steady is a fleet whose capacity equals its demand: 2 cheap replicas serve half of it, 1 fast one
// the other half.
func steady(c, f func(*group)) *scenario {
	slow, quick := cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}), fast(group{ready: 1, running: 60, kv: 0.6, rate: 12})
	c(&slow)
	f(&quick)
	return newScenario(slow, quick)
}

func TestPinnedReplicasCountAsCapacity(t *testing.T) {
	same := func(*group) {}
	want := steady(same, same).decide(t)["fast"].Replicas
	for name, change := range map[string]func(*group){
		"unsupported":        func(g *group) { g.variant = unsupported },
		"invalid":            func(g *group) { g.variant = invalid },
		"another HPA":        func(g *group) { g.workload = otherHPA },
		"paused":             func(g *group) { g.variant = paused(fleet.Pause{All: true}) },
		"paused at a number": func(g *group) { g.variant = paused(fleet.Pause{All: true, Fixed: true, Replicas: 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := steady(change, same).decide(t)
			if d["fast"].Replicas != want || d["cheap"].Replicas != 2 {
				t.Errorf("cheap %+v\nfast %+v\nwant the fast one at %d, and cheap at 2", d["cheap"], d["fast"], want)
			}
		})
	}
}

func TestInvalidVariantWithoutMetricsIsExcluded(t *testing.T) {
	same := func(*group) {}
	alone := func(change func(*group)) fleet.Decision {
		s := steady(change, same)
		s.Variants = s.Variants[1:]
		return s.decide(t)["fast"]
	}
	for name, change := range map[string]func(*group){
		"no metrics":                 func(g *group) { g.mute = true },
		"metrics under another name": func(g *group) { g.usage = func(u *fleet.Usage) { u.Model = "other" } },
		"no model name":              func(g *group) { g.variant = func(v *fleet.Variant) { v.Model.Name = "" } },
		"served under another name":  func(g *group) { g.variant = func(v *fleet.Variant) { v.ServedName = "other" } },
		"prefill only":               func(g *group) { g.variant = func(v *fleet.Variant) { v.Role = fleet.RolePrefill } },
		"none is ready":              func(g *group) { g.ready, g.loading = 0, 2 },
		"no target":                  func(g *group) { g.absent = true },
	} {
		t.Run(name, func(t *testing.T) {
			broken := func(g *group) {
				change(g)
				inner := g.variant
				g.variant = func(v *fleet.Variant) {
					if inner != nil {
						inner(v)
					}
					v.Invalid = problem("broken", "repair it")
				}
			}
			want, got := alone(broken), steady(broken, same).decide(t)
			if d := got["fast"]; d.Replicas != want.Replicas || d.Reason.String() != want.Reason.String() {
				t.Errorf("fast %+v, want %+v as without the invalid one", d, want)
			}
			if d := got["cheap"]; !d.Held || d.Reason.Code != fleet.CodeInvalidDefinition {
				t.Errorf("cheap %+v, want it held for its validation error", d)
			}
		})
	}
}

func TestPriceOfAnInvalidVariantIsNotUsed(t *testing.T) {
	s := newScenario(
		cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Hour), variant: func(v *fleet.Variant) { invalid(v); v.Cost = 10 }}),
		group{name: "second", cost: 1, max: 4, accelerator: "L40S", ready: 1, running: 60, kv: 0.6, rate: 6})
	if d := s.decide(t); d["second"].Facts.Cost != 1 || d["cheap"].Facts.Saturation.State != fleet.Present {
		t.Errorf("second %+v, cheap %+v: want the price of the valid one, and the load of both known", d["second"], d["cheap"])
	}
}

func TestInvalidVariantIsPinnedAtThePreviousDecision(t *testing.T) {
	s := steady(func(g *group) { g.variant = invalid }, func(*group) {}).previous("cheap", 3, time.Minute)
	d := s.decide(t)
	expect(t, d["cheap"], 3, fleet.CodeInvalidDefinition)
	if !d["cheap"].Held || !d["cheap"].Decided.Equal(epoch.Add(-time.Minute)) {
		t.Errorf("%+v, want it held, and the time at which its number was decided", d["cheap"])
	}
}

func TestOtherVariantsServeTheLoadAboveAPausedOne(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 100, waiting: 50, kv: 0.95, rate: 6, variant: paused(fleet.Pause{All: true})}), fast(group{}))
	d := s.gateway(0, 30).decide(t)
	expect(t, d["cheap"], 2, fleet.CodePaused)
	if d["fast"].Replicas == 0 {
		t.Errorf("30/s arrive and two paused replicas serve less: %+v, want the other variant scaled up", d["fast"])
	}
}

func TestConflictingHPAHoldsAtCurrentReplicas(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 1, kv: 0.01, rate: 0.1, workload: otherHPA})).previous("cheap", 1, time.Minute)
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeConflictingHPA)
	if !d.Held || d.Unsupported || !strings.Contains(d.Reason.String(), "HPA cpu") || !strings.Contains(d.Reason.String(), "transfer-hpa-ownership") {
		t.Errorf("%+v, want it held with the name of the HPA and both remedies", d)
	}
}

func TestPausedVariantIsDecidedInAnyStateOfItsModel(t *testing.T) {
	fixed := paused(fleet.Pause{All: true, Fixed: true, Replicas: 7})
	for name, g := range map[string]group{
		"decided":             {ready: 3, running: 1, kv: 0.01, rate: 0.1, variant: fixed},
		"metrics are missing": {ready: 3, mute: true, variant: fixed},
		"above its maximum":   {ready: 3, mute: true, max: 5, variant: fixed},
		"no target":           {absent: true, variant: fixed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newScenario(cheap(g)).decide(t)["cheap"]
			expect(t, d, 7, fleet.CodePaused)
			if d.Held {
				t.Error("it is held, want the annotation's number as a decision")
			}
		})
	}
	t.Run("at current replicas, if the annotation has no number", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 3, mute: true, variant: paused(fleet.Pause{All: true})})).previous("cheap", 9, time.Minute).decide(t)["cheap"]
		expect(t, d, 3, fleet.CodePaused)
	})
	t.Run("unknown, if the target was not found either", func(t *testing.T) {
		d := newScenario(cheap(group{absent: true, variant: paused(fleet.Pause{All: true})})).decide(t)["cheap"]
		if d.Known || !d.Held || d.Reason.Code != fleet.CodePaused {
			t.Errorf("%+v, want it held at an unknown number", d)
		}
	})
}

func TestPausedScaleInKeepsCurrentReplicas(t *testing.T) {
	quiet := cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5, variant: paused(fleet.Pause{In: true})})
	d := newScenario(quiet).decide(t)["cheap"]
	if d.Replicas != 6 || d.Held || !strings.Contains(d.Reason.String(), "paused-scale-in") {
		t.Errorf("%+v, want 6 and the annotation named", d)
	}
	t.Run("scale-up continues", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6, variant: paused(fleet.Pause{In: true})})).decide(t)["cheap"]
		if d.Replicas < 5 {
			t.Errorf("%+v, want several more", d)
		}
	})
	t.Run("no scale to zero", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{In: true})}), fast(group{ready: 1})).load(unused).scaleToZero()
		d := s.decide(t)
		if d["cheap"].Replicas != 2 || d["fast"].Replicas != 0 {
			t.Errorf("cheap %+v, fast %+v, want 2 and 0", d["cheap"], d["fast"])
		}
	})
	t.Run("not above the maximum, which the HPA enforces", func(t *testing.T) {
		g := quiet
		g.max = 4
		if d := newScenario(g).decide(t)["cheap"]; d.Replicas != 4 {
			t.Errorf("%+v, want the maximum", d)
		}
	})
	t.Run("also while it is held", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 6, mute: true, variant: paused(fleet.Pause{In: true})})).previous("cheap", 2, time.Minute)
		expect(t, s.decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
	})
}

func TestPausedScaleOutKeepsCurrentReplicas(t *testing.T) {
	busy := cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6, variant: paused(fleet.Pause{Out: true})})
	d := newScenario(busy, fast(group{})).decide(t)
	if d["cheap"].Replicas != 2 || d["fast"].Replicas == 0 {
		t.Errorf("cheap %+v, fast %+v, want 2, and the other scaled up instead", d["cheap"], d["fast"])
	}
	alone := newScenario(busy).decide(t)["cheap"]
	expect(t, alone, 2, fleet.CodeScaleOutPaused)
	if !strings.Contains(alone.Reason.String(), "paused-scale-out") || strings.Contains(alone.Reason.String(), "raise maxReplicaCount") {
		t.Errorf("reason %q, want the annotation named and no remedy that does not help", alone.Reason.String())
	}
	t.Run("scale-down continues", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5, variant: paused(fleet.Pause{Out: true})})).decide(t)["cheap"]
		if d.Replicas >= 6 {
			t.Errorf("%+v, want fewer", d)
		}
	})
	t.Run("not below the minimum, which the HPA enforces", func(t *testing.T) {
		g := busy
		g.min = 4
		if d := newScenario(g).decide(t)["cheap"]; d.Replicas != 4 {
			t.Errorf("%+v, want the minimum", d)
		}
	})
}

func TestForcedActivationKeepsOneReplica(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{Awake: true})}), fast(group{ready: 1})).load(unused).scaleToZero()
	d := s.decide(t)
	if d["cheap"].Replicas != 1 || d["fast"].Replicas != 0 || !strings.Contains(d["cheap"].Reason.String(), "force-activation") {
		t.Errorf("cheap %+v, fast %+v, want 1 and 0", d["cheap"], d["fast"])
	}
}

func TestActiveFallbackIsInTheReason(t *testing.T) {
	active := func(v *fleet.Variant) { v.Fallback = true }
	for name, s := range map[string]*scenario{
		"decided": newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: active})),
		"held":    newScenario(cheap(group{ready: 3, mute: true, variant: active})),
	} {
		if d := s.decide(t)["cheap"]; d.Replicas != 3 || !d.Facts.Fallback || !strings.Contains(d.Reason.String(), "KEDA applies its fallback") {
			t.Errorf("%s: %+v, want 3 and the fallback in the reason", name, d)
		}
	}
}

func TestRollingUpdateKeepsTheNumber(t *testing.T) {
	const asked = 10
	on := func(ready int) group { // the same load on so many ready replicas
		part := float64(asked) / float64(ready)
		return cheap(group{spec: asked, ready: ready, running: 60 * part, kv: 0.6 * part, rate: 6 * part, max: 30})
	}
	want := newScenario(on(asked)).decide(t)["cheap"]
	for name, g := range map[string]group{
		"a surge that starts":    func() group { g := on(10); g.loading = 3; return g }(),
		"a surge that is ready":  on(13),
		"two not replaced yet":   on(8),
		"replaced one by one":    func() group { g := on(9); g.loading = 2; return g }(),
		"a surge that is stuck":  func() group { g := on(10); g.stuck = 2; return g }(),
		"the old ones terminate": func() group { g := on(10); g.workload = terminateOneMore; return g }(),
	} {
		t.Run(name, func(t *testing.T) {
			d := newScenario(g).decide(t)["cheap"]
			if d.Replicas != want.Replicas || d.Facts.Current != asked {
				t.Errorf("%d, current %d: %s; want %d as without an update, current %d", d.Replicas, d.Facts.Current, d.Reason.String(), want.Replicas, asked)
			}
		})
	}
}

func terminateOneMore(w *fleet.Workload) {
	w.Pods = append(w.Pods, fleet.Pod{Name: "old", Created: epoch.Add(-time.Hour), Ready: true, ReadyAt: epoch.Add(-time.Hour), Terminating: true})
}

// unused makes a load that of a model which was idle for its retention.
func unused(l *fleet.Load) {
	l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
	l.IdleCovered, l.LastActive = 10*time.Minute, epoch.Add(-11*time.Minute)
}

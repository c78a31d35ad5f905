package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

const refusal = "metricType \"Value\" of trigger 0: the HPA would not take our number as the number of replicas; remove metricType from the trigger"

func refused(v *fleet.Variant) { v.Unsupported = refusal }

func faulty(v *fleet.Variant) {
	v.Invalid = "variantCost \"cheap\" is not a decimal number; write digits only"
}

func foreign(w *fleet.Workload) { w.ConflictingHPA = "cpu" }

func paused(p fleet.Pause) func(*fleet.Variant) {
	return func(v *fleet.Variant) { v.Pause = p }
}

func TestRefusedVariantIsHeldAtWhatRuns(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 1, kv: 0.01, rate: 0.1, variant: refused})).standing("cheap", 9, time.Minute)
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeUnsupportedTrigger)
	if !d.Held || !d.Unsupported || d.Reason.String() != refusal {
		t.Errorf("%+v, want it held and refused, with the refusal as it is", d)
	}
	t.Run("also while its metrics are missing", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 3, mute: true, variant: refused})).decide(t)["cheap"]
		expect(t, d, 3, fleet.CodeUnsupportedTrigger)
	})
	t.Run("also where its definition is faulty", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 3, variant: refused}))
		s.Variants[0].Invalid = "role: no"
		d := s.decide(t)["cheap"]
		expect(t, d, 3, fleet.CodeUnsupportedTrigger)
		if !d.Unsupported {
			t.Errorf("%+v, want it refused", d)
		}
	})
	t.Run("at an unknown number where its workload was not seen, as a ScaledJob's never is", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5}), group{name: "job", cost: 1, max: 3, absent: true, variant: func(v *fleet.Variant) {
			v.Unsupported, v.Target = refusal, fleet.TargetID{}
		}})
		d := s.decide(t)
		if job := d["job"]; job.Known || !job.Held || !job.Unsupported || job.Reason.Code != fleet.CodeUnsupportedTrigger {
			t.Errorf("%+v, want it refused at an unknown number", job)
		}
		expect(t, d["cheap"], 2, fleet.CodeUnchanged)
	})
}

// steady is a fleet that has just what it needs: 2 cheap replicas carry half of it, 1 fast one the other half.
func steady(c, f func(*group)) *scenario {
	slow, quick := cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}), fast(group{ready: 1, running: 60, kv: 0.6, rate: 12})
	c(&slow)
	f(&quick)
	return newScenario(slow, quick)
}

func TestReplicasThatOthersSetCarryTheirPartOfTheLoad(t *testing.T) {
	same := func(*group) {}
	want := steady(same, same).decide(t)["fast"].Replicas
	for name, change := range map[string]func(*group){
		"refused":              func(g *group) { g.variant = refused },
		"faulty":               func(g *group) { g.variant = faulty },
		"another's autoscaler": func(g *group) { g.workload = foreign },
		"paused":               func(g *group) { g.variant = paused(fleet.Pause{All: true}) },
		"paused at a number":   func(g *group) { g.variant = paused(fleet.Pause{All: true, Fixed: true, Replicas: 2}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := steady(change, same).decide(t)
			if d["fast"].Replicas != want || d["cheap"].Replicas != 2 {
				t.Errorf("cheap %+v\nfast %+v\nwant the fast one at %d, and cheap at 2", d["cheap"], d["fast"], want)
			}
		})
	}
}

func TestFaultyVariantWhoseReplicasProveNothingTakesNoPart(t *testing.T) {
	same := func(*group) {}
	alone := func(change func(*group)) fleet.Decision {
		s := steady(change, same)
		s.Variants = s.Variants[1:]
		return s.decide(t)["fast"]
	}
	for name, change := range map[string]func(*group){
		"they report nothing":             func(g *group) { g.mute = true },
		"they report under another name":  func(g *group) { g.usage = func(u *fleet.Usage) { u.Model = "other" } },
		"the model's name is not read":    func(g *group) { g.variant = func(v *fleet.Variant) { v.Model.Name = "" } },
		"they serve under another name":   func(g *group) { g.variant = func(v *fleet.Variant) { v.ServedName = "other" } },
		"they do a part of the work only": func(g *group) { g.variant = func(v *fleet.Variant) { v.Role = fleet.RolePrefill } },
		"none is ready":                   func(g *group) { g.ready, g.loading = 0, 2 },
		"they were not seen":              func(g *group) { g.absent = true },
	} {
		t.Run(name, func(t *testing.T) {
			broken := func(g *group) {
				change(g)
				inner := g.variant
				g.variant = func(v *fleet.Variant) {
					if inner != nil {
						inner(v)
					}
					v.Invalid = "broken; repair it"
				}
			}
			want, got := alone(broken), steady(broken, same).decide(t)
			if d := got["fast"]; d.Replicas != want.Replicas || d.Reason.String() != want.Reason.String() {
				t.Errorf("fast %+v, want %+v as without the faulty one", d, want)
			}
			if d := got["cheap"]; !d.Held || d.Reason.Code != fleet.CodeInvalidDefinition {
				t.Errorf("cheap %+v, want it held for its fault", d)
			}
		})
	}
}

func TestFaultyVariantIsNotBelieved(t *testing.T) {
	s := newScenario(
		cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, created: epoch.Add(-time.Hour), variant: func(v *fleet.Variant) { faulty(v); v.Cost = 10 }}),
		group{name: "twin", cost: 1, max: 4, accelerator: "L40S", ready: 1, running: 60, kv: 0.6, rate: 6})
	if d := s.decide(t); d["twin"].Facts.Cost != 1 || d["cheap"].Facts.Saturation.State != fleet.Present {
		t.Errorf("twin %+v, cheap %+v: want the price of the sound one to stand, and the load of both known", d["twin"], d["cheap"])
	}
}

func TestFaultyVariantStaysAtItsStandingNumberAndTakesPartWithIt(t *testing.T) {
	s := steady(func(g *group) { g.variant = faulty }, func(*group) {}).standing("cheap", 3, time.Minute)
	d := s.decide(t)
	expect(t, d["cheap"], 3, fleet.CodeInvalidDefinition)
	if !d["cheap"].Held || !d["cheap"].Decided.Equal(epoch.Add(-time.Minute)) {
		t.Errorf("%+v, want it held, and the time at which its number was decided", d["cheap"])
	}
}

func TestOthersMakeUpForWhatAPausedVariantDoesNotCarry(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 100, waiting: 50, kv: 0.95, rate: 6, variant: paused(fleet.Pause{All: true})}), fast(group{}))
	d := s.gateway(0, 30).decide(t)
	expect(t, d["cheap"], 2, fleet.CodePaused)
	if d["fast"].Replicas == 0 {
		t.Errorf("30/s arrive where two paused replicas carry less: %+v, want the other variant to grow", d["fast"])
	}
}

func TestForeignAutoscalerHoldsItsTargetAtWhatRuns(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 1, kv: 0.01, rate: 0.1, workload: foreign})).standing("cheap", 1, time.Minute)
	d := s.decide(t)["cheap"]
	expect(t, d, 3, fleet.CodeConflictingHPA)
	if !d.Held || d.Unsupported || !strings.Contains(d.Reason.String(), "HPA cpu") || !strings.Contains(d.Reason.String(), "transfer-hpa-ownership") {
		t.Errorf("%+v, want it held with the name of the HPA and both remedies", d)
	}
}

func TestPausedVariantHasItsNumberWhateverIsKnownOfTheModel(t *testing.T) {
	fixed := paused(fleet.Pause{All: true, Fixed: true, Replicas: 7})
	for name, g := range map[string]group{
		"decided":             {ready: 3, running: 1, kv: 0.01, rate: 0.1, variant: fixed},
		"metrics are missing": {ready: 3, mute: true, variant: fixed},
		"above its maximum":   {ready: 3, mute: true, max: 5, variant: fixed},
		"not seen":            {absent: true, variant: fixed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newScenario(cheap(g)).decide(t)["cheap"]
			expect(t, d, 7, fleet.CodePaused)
			if d.Held {
				t.Error("it is held, want the annotation's number as a decision")
			}
		})
	}
	t.Run("as it is, where the annotation says no number", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 3, mute: true, variant: paused(fleet.Pause{All: true})})).standing("cheap", 9, time.Minute).decide(t)["cheap"]
		expect(t, d, 3, fleet.CodePaused)
	})
	t.Run("unknown, where it was not seen either", func(t *testing.T) {
		d := newScenario(cheap(group{absent: true, variant: paused(fleet.Pause{All: true})})).decide(t)["cheap"]
		if d.Known || !d.Held || d.Reason.Code != fleet.CodePaused {
			t.Errorf("%+v, want it held at an unknown number", d)
		}
	})
}

func TestPausedScaleInKeepsWhatStands(t *testing.T) {
	quiet := cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5, variant: paused(fleet.Pause{In: true})})
	d := newScenario(quiet).decide(t)["cheap"]
	if d.Replicas != 6 || d.Held || !strings.Contains(d.Reason.String(), "paused-scale-in") {
		t.Errorf("%+v, want 6 and the annotation named", d)
	}
	t.Run("and goes on growing", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6, variant: paused(fleet.Pause{In: true})})).decide(t)["cheap"]
		if d.Replicas < 5 {
			t.Errorf("%+v, want several more", d)
		}
	})
	t.Run("nor goes to zero", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{In: true})}), fast(group{ready: 1})).load(unused).toZero()
		d := s.decide(t)
		if d["cheap"].Replicas != 2 || d["fast"].Replicas != 0 {
			t.Errorf("cheap %+v, fast %+v, want 2 and 0", d["cheap"], d["fast"])
		}
	})
	t.Run("but not above the maximum, which the HPA enforces", func(t *testing.T) {
		g := quiet
		g.max = 4
		if d := newScenario(g).decide(t)["cheap"]; d.Replicas != 4 {
			t.Errorf("%+v, want the maximum", d)
		}
	})
	t.Run("also while it is held", func(t *testing.T) {
		s := newScenario(cheap(group{ready: 6, mute: true, variant: paused(fleet.Pause{In: true})})).standing("cheap", 2, time.Minute)
		expect(t, s.decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
	})
}

func TestPausedScaleOutKeepsWhatStands(t *testing.T) {
	busy := cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6, variant: paused(fleet.Pause{Out: true})})
	d := newScenario(busy, fast(group{})).decide(t)
	if d["cheap"].Replicas != 2 || d["fast"].Replicas == 0 {
		t.Errorf("cheap %+v, fast %+v, want 2, and the other to grow instead", d["cheap"], d["fast"])
	}
	alone := newScenario(busy).decide(t)["cheap"]
	expect(t, alone, 2, fleet.CodeMaxReplicas)
	if !strings.Contains(alone.Reason.String(), "paused-scale-out") || strings.Contains(alone.Reason.String(), "raise maxReplicaCount") {
		t.Errorf("reason %q, want the annotation named and no remedy that does not help", alone.Reason.String())
	}
	t.Run("and goes on shrinking", func(t *testing.T) {
		d := newScenario(cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5, variant: paused(fleet.Pause{Out: true})})).decide(t)["cheap"]
		if d.Replicas >= 6 {
			t.Errorf("%+v, want fewer", d)
		}
	})
	t.Run("nor below the minimum, which the HPA enforces", func(t *testing.T) {
		g := busy
		g.min = 4
		if d := newScenario(g).decide(t)["cheap"]; d.Replicas != 4 {
			t.Errorf("%+v, want the minimum", d)
		}
	})
}

func TestVariantThatIsKeptAwakeDoesNotGoToZero(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{Awake: true})}), fast(group{ready: 1})).load(unused).toZero()
	d := s.decide(t)
	if d["cheap"].Replicas != 1 || d["fast"].Replicas != 0 || !strings.Contains(d["cheap"].Reason.String(), "force-activation") {
		t.Errorf("cheap %+v, fast %+v, want 1 and 0", d["cheap"], d["fast"])
	}
}

func TestFallbackInForceIsSaid(t *testing.T) {
	inForce := func(v *fleet.Variant) { v.Fallback = true }
	for name, s := range map[string]*scenario{
		"decided": newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: inForce})),
		"held":    newScenario(cheap(group{ready: 3, mute: true, variant: inForce})),
	} {
		if d := s.decide(t)["cheap"]; d.Replicas != 3 || !d.Facts.Fallback || !strings.Contains(d.Reason.String(), "KEDA applies its fallback") {
			t.Errorf("%s: %+v, want 3 and the fallback said", name, d)
		}
	}
}

func TestRollingUpdateDoesNotDrift(t *testing.T) {
	const asked = 10
	on := func(ready int) group { // the same load on so many ready replicas
		part := float64(asked) / float64(ready)
		return cheap(group{spec: asked, ready: ready, running: 60 * part, kv: 0.6 * part, rate: 6 * part, max: 30})
	}
	want := newScenario(on(asked)).decide(t)["cheap"]
	for name, g := range map[string]group{
		"a surge that loads":     func() group { g := on(10); g.loading = 3; return g }(),
		"a surge that is ready":  on(13),
		"two not replaced yet":   on(8),
		"replaced one by one":    func() group { g := on(9); g.loading = 2; return g }(),
		"a surge that is stuck":  func() group { g := on(10); g.stuck = 2; return g }(),
		"the old ones terminate": func() group { g := on(10); g.workload = terminateOneMore; return g }(),
	} {
		t.Run(name, func(t *testing.T) {
			d := newScenario(g).decide(t)["cheap"]
			if d.Replicas != want.Replicas || d.Facts.Current != asked {
				t.Errorf("%d of %d asked for: %s; want %d as without an update, and %d asked for", d.Replicas, d.Facts.Current, d.Reason.String(), want.Replicas, asked)
			}
		})
	}
}

func terminateOneMore(w *fleet.Workload) {
	w.Pods = append(w.Pods, fleet.Pod{Name: "old", Created: epoch.Add(-time.Hour), Ready: true, ReadyAt: epoch.Add(-time.Hour), Terminating: true})
}

// unused makes a load that of a model which nobody has used for its retention.
func unused(l *fleet.Load) {
	l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
	l.IdleCovered, l.LastActive = 10*time.Minute, epoch.Add(-11*time.Minute)
}

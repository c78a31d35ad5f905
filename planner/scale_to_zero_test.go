package planner

import (
	"reflect"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

func expectSame(t *testing.T, got, want fleet.Plan) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is\n%+v\nwant\n%+v", got, want)
	}
}

func TestVariantThatCannotScaleFromZeroIsSkipped(t *testing.T) {
	for name, change := range map[string]func(*group){
		"unsupported":            func(g *group) { g.variant = unsupported },
		"another HPA":            func(g *group) { g.workload = otherHPA },
		"paused at zero":         func(g *group) { g.variant = paused(fleet.Pause{All: true}) },
		"paused at the number 0": func(g *group) { g.variant = paused(fleet.Pause{All: true, Fixed: true}) },
		"scale-up paused":        func(g *group) { g.variant = paused(fleet.Pause{Out: true}) },
		"scale-up paused, minimum 2": func(g *group) {
			g.min, g.variant = 2, paused(fleet.Pause{Out: true})
		},
		"invalid": func(g *group) {
			g.variant = func(v *fleet.Variant) { v.Invalid = problem("role: no", "write prefill") }
		},
		"no target": func(g *group) { g.absent = true },
	} {
		t.Run(name, func(t *testing.T) {
			cheapest := cheap(group{})
			change(&cheapest)
			expensive := group{name: "expensive", cost: 9, max: 3, accelerator: "H100"}
			s := newScenario(expensive, cheapest, fast(group{})).scaleToZero().gateway(7, 0.2)
			s.Variants[0].GPUsPerReplica = 2
			d := s.decide(t)
			if d["cheap"].Replicas != 0 {
				t.Errorf("%+v, want it at zero", d["cheap"])
			}
			expect(t, d["fast"], 1, fleet.CodeScaleFromZero)
			expect(t, d["expensive"], 0, fleet.CodeUnchanged)
		})
	}
}

func TestVariantPausedAtOneReplicaServesAlone(t *testing.T) {
	fixed := paused(fleet.Pause{All: true, Fixed: true, Replicas: 1})
	d := newScenario(cheap(group{}), fast(group{ready: 1, running: 5, kv: 0.1, rate: 1, variant: fixed})).scaleToZero().gateway(0, 1).decide(t)
	expect(t, d["cheap"], 0, fleet.CodeUnchanged)
	expect(t, d["fast"], 1, fleet.CodePaused)
}

func TestNextCheapestKeepsTheLastReplica(t *testing.T) {
	d := newScenario(cheap(group{variant: paused(fleet.Pause{All: true})}), fast(group{})).decide(t)
	expect(t, d["cheap"], 0, fleet.CodePaused)
	expect(t, d["fast"], 1, fleet.CodeLastReplica)
}

func TestModelScalesToZeroExceptPausedVariants(t *testing.T) {
	d := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{All: true})}), fast(group{ready: 1})).load(unused).scaleToZero().decide(t)
	expect(t, d["cheap"], 2, fleet.CodePaused)
	expect(t, d["fast"], 0, fleet.CodeScaleToZero)
}

func TestArrivalsWithoutAQueueScaleFromZero(t *testing.T) {
	d := newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(0, 0.2).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestQueueOfOneModelScalesNoOtherFromZero(t *testing.T) {
	s := newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(7, 0.2)
	s.Variants[1].Model.Name = "another"
	s.Models = append(s.Models, fleet.Model{ID: s.Variants[1].Model, Retention: time.Minute})
	d := s.decide(t)
	expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestScaleFromZeroGoesToTheMinimum(t *testing.T) {
	s := newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(7, 0.2)
	s.Variants[0].Range = fleet.Range{Min: 2, Max: 5, AllowsIdle: true}
	d := s.decide(t)
	expect(t, d["cheap"], 2, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

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

func TestVariantThatCannotBeWokenIsPassedOver(t *testing.T) {
	for name, change := range map[string]func(*group){
		"refused":                func(g *group) { g.variant = refused },
		"another's autoscaler":   func(g *group) { g.workload = foreign },
		"paused at zero":         func(g *group) { g.variant = paused(fleet.Pause{All: true}) },
		"paused at the number 0": func(g *group) { g.variant = paused(fleet.Pause{All: true, Fixed: true}) },
		"not allowed to grow":    func(g *group) { g.variant = paused(fleet.Pause{Out: true}) },
		"not allowed to grow, though its minimum is 2": func(g *group) {
			g.min, g.variant = 2, paused(fleet.Pause{Out: true})
		},
		"faulty":   func(g *group) { g.variant = func(v *fleet.Variant) { v.Invalid = "role: no" } },
		"not seen": func(g *group) { g.absent = true },
	} {
		t.Run(name, func(t *testing.T) {
			cheapest := cheap(group{})
			change(&cheapest)
			dearest := group{name: "dearest", cost: 9, max: 3, accelerator: "H100"}
			s := newScenario(dearest, cheapest, fast(group{})).toZero().gateway(7, 0.2)
			s.Variants[0].GPUsPerReplica = 2
			d := s.decide(t)
			if d["cheap"].Replicas != 0 {
				t.Errorf("%+v, want it left at zero", d["cheap"])
			}
			expect(t, d["fast"], 1, fleet.CodeScaleFromZero)
			expect(t, d["dearest"], 0, fleet.CodeUnchanged)
		})
	}
}

func TestVariantThatIsPausedAwakeServesAlone(t *testing.T) {
	fixed := paused(fleet.Pause{All: true, Fixed: true, Replicas: 1})
	d := newScenario(cheap(group{}), fast(group{ready: 1, running: 5, kv: 0.1, rate: 1, variant: fixed})).toZero().gateway(0, 1).decide(t)
	expect(t, d["cheap"], 0, fleet.CodeUnchanged)
	expect(t, d["fast"], 1, fleet.CodePaused)
}

func TestNextCheapestKeepsTheOneReplicaOfAModelThatMayNotGoToZero(t *testing.T) {
	d := newScenario(cheap(group{variant: paused(fleet.Pause{All: true})}), fast(group{})).decide(t)
	expect(t, d["cheap"], 0, fleet.CodePaused)
	expect(t, d["fast"], 1, fleet.CodeLastReplica)
}

func TestModelGoesToZeroAroundWhatIsPaused(t *testing.T) {
	d := newScenario(cheap(group{ready: 2, variant: paused(fleet.Pause{All: true})}), fast(group{ready: 1})).load(unused).toZero().decide(t)
	expect(t, d["cheap"], 2, fleet.CodePaused)
	expect(t, d["fast"], 0, fleet.CodeScaleToZero)
}

func TestArrivalsWithoutAQueueWakeTheCheapestToo(t *testing.T) {
	d := newScenario(cheap(group{}), fast(group{})).toZero().gateway(0, 0.2).decide(t)
	expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestQueueOfOneModelWakesNoOther(t *testing.T) {
	s := newScenario(cheap(group{}), fast(group{})).toZero().gateway(7, 0.2)
	s.Variants[1].Model.Name = "another"
	s.Models = append(s.Models, fleet.Model{ID: s.Variants[1].Model, ScaleToZero: true, Retention: time.Minute})
	d := s.decide(t)
	expect(t, d["cheap"], 1, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

func TestIdleVariantIsWokenToItsMinimum(t *testing.T) {
	s := newScenario(cheap(group{}), fast(group{})).toZero().gateway(7, 0.2)
	s.Variants[0].Range = fleet.Range{Min: 2, Max: 5, AllowsIdle: true}
	d := s.decide(t)
	expect(t, d["cheap"], 2, fleet.CodeScaleFromZero)
	expect(t, d["fast"], 0, fleet.CodeUnchanged)
}

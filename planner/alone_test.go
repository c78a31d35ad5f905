package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// oneH100 is a model on an H100, beside which an L40S would get few requests. Three L40S would
// serve it for 2.1 an hour instead of 3.
func oneH100(l40s int) *scenario {
	s := h100AndL40S(1, l40s, [2]float64{14, 2.5}, 100*time.Millisecond)
	s.variant("l40s").Cost = 0.7
	return s
}

// rated gives a part requests at a rate, all of which meet the objective.
func rated(p *fleet.LatencyPart, rate float64) {
	p.Requests = rate * partLength.Seconds()
	p.TTFT, p.ITL = []fleet.Bucket{{Upper: 2, Count: p.Requests}}, []fleet.Bucket{{Upper: 0.1, Count: p.Requests}}
}

func TestCheaperVariantServesAlone(t *testing.T) {
	d := oneH100(1).decide(t)
	if n := d["l40s"].Replicas; n != 3 {
		t.Errorf("%d L40S (%s), want the three that serve alone", n, d["l40s"].Reason.String())
	}
	if h := d["h100"]; h.Replicas != 1 || h.Reason.Code != fleet.CodeMakeBeforeBreak {
		t.Errorf("%d H100, %s, want it kept until the L40S are ready", h.Replicas, h.Reason.String())
	}
	if limit := d["l40s"].Facts.LimitedBy; limit != "ITL" {
		t.Errorf("capacity limited by %s, want the limit without the H100", limit)
	}
	ready := h100AndL40S(1, 4, [2]float64{6.5, 2.5}, 100*time.Millisecond)
	ready.variant("l40s").Cost = 0.7
	d = ready.decide(t)
	if h := d["h100"]; h.Replicas != 0 || d["l40s"].Replicas < 3 {
		t.Errorf("%d H100, %s, and %d L40S, want the L40S alone", h.Replicas, h.Reason.String(), d["l40s"].Replicas)
	}
}

func TestReasonsSayThatAVariantServesAlone(t *testing.T) {
	s := h100AndL40S(1, 4, [2]float64{14, 2}, 100*time.Millisecond)
	s.variant("l40s").Cost = 0.5
	d := s.decide(t)
	if h := d["h100"]; h.Replicas != 0 || !strings.Contains(h.Reason.Text, "cheaper on l40s alone") {
		t.Errorf("%d H100: %s", h.Replicas, h.Reason.String())
	}
	if l := d["l40s"]; l.Replicas != 4 || !strings.Contains(l.Reason.Text, "cheaper alone") {
		t.Errorf("%d L40S: %s", l.Replicas, l.Reason.String())
	}
}

// Each case is a reason to keep the mix.
func TestMixIsKept(t *testing.T) {
	for name, change := range map[string]func(*scenario){
		"the mix is cheaper":       func(s *scenario) { s.variant("l40s").Cost = 1.01 },
		"KEDA keeps the other one": func(s *scenario) { s.variant("h100").Range.Min = 1 },
		"the maximum is too low":   func(s *scenario) { s.variant("l40s").Range.Max = 2 },
		"the other one is paused":  func(s *scenario) { s.variant("h100").Pause.In = true },
		"replicas do not start": func(s *scenario) {
			w := &s.Workloads[1]
			w.Pods = append(w.Pods, fleet.Pod{Name: "l40s-late", Created: epoch.Add(-time.Hour), Waiting: "Unschedulable"})
			w.Replicas++
		},
		"a query failed":        func(s *scenario) { s.missing("window", "timeout") },
		"the peak is not known": func(s *scenario) { s.load(func(l *fleet.Load) { l.PeakCovered = false }) },
		"too few are free":      func(s *scenario) { s.node("L40S", "a", 2, 0).on("l40s", "a") },
		"others have the rest":  func(s *scenario) { s.node("L40S", "a", 4, 2).on("l40s", "a") },
		"a peak that is over": func(s *scenario) {
			s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(22) })
		},
		"the demand has not lasted": func(s *scenario) {
			s.served(func(i int, p *fleet.LatencyPart) {
				rated(p, 16.5)
				if i == servedParts-1 {
					rated(p, 5)
				}
			})
		},
	} {
		s := oneH100(1)
		change(s)
		if d := s.decide(t)["l40s"]; d.Replicas > 2 {
			t.Errorf("%s: %d L40S: %s", name, d.Replicas, d.Reason.String())
		}
	}
	lasting := oneH100(1).served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
	if d := lasting.decide(t)["l40s"]; d.Replicas != 3 {
		t.Errorf("a demand that has lasted: %d L40S: %s", d.Replicas, d.Reason.String())
	}
	free := oneH100(1).node("L40S", "a", 3, 0).on("l40s", "a")
	if d := free.decideWithin(t)["l40s"]; d.Replicas != 3 {
		t.Errorf("three are free: %d L40S: %s", d.Replicas, d.Reason.String())
	}
}

// Another model needs the free accelerators: nothing is taken from it for a lower price.
func TestMixIsKeptBesideAModelThatStarts(t *testing.T) {
	other := newScenario(cheap(group{ready: 1, running: 60, kv: 0.6, rate: 5, max: 4, accelerator: "L40S"})).gateway(0, 16)
	s := oneH100(1).beside("other", other.called("other-")).node("L40S", "a", 5, 0).on("l40s", "a").on("other-cheap", "a")
	d := s.decideWithin(t)
	if n := d["other-cheap"].Replicas; n < 3 {
		t.Fatalf("%d replicas of the other model: %s", n, d["other-cheap"].Reason.String())
	}
	if n := d["l40s"].Replicas; n > 1 {
		t.Errorf("%d L40S beside a model that needs them: %s", n, d["l40s"].Reason.String())
	}
}

package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
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

// The replicas of the variant that is to serve alone exist, and are enough without the additional
// headroom of a cheaper mix: none is started for that, and the others do not wait for it.
func TestReplicasThatAreEnoughServeAlone(t *testing.T) {
	for _, rate := range []float64{12.5, 13.5, 14.5} {
		s := h100AndL40S(1, 4, [2]float64{rate, 2.5}, 100*time.Millisecond)
		s.variant("l40s").Cost = 0.7
		d := s.decide(t)
		if d["h100"].Replicas != 0 || d["l40s"].Replicas != 4 {
			t.Errorf("%v req/s: %d H100, %s, and %d L40S, %s", rate, d["h100"].Replicas, d["h100"].Reason.String(), d["l40s"].Replicas, d["l40s"].Reason.String())
		}
	}
	s := h100AndL40S(1, 4, [2]float64{13.5, 2.5}, 100*time.Millisecond).load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(30) })
	s.variant("l40s").Cost = 0.7
	if d := s.decide(t); d["h100"].Replicas != 1 {
		t.Errorf("%d H100, %s, want it kept for the peak", d["h100"].Replicas, d["h100"].Reason.String())
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

// alone returns the variant that the planner chose to serve the first model alone; "" if none.
func (s *scenario) alone() string {
	r := roundOf(s.Snapshot)
	r.mix()
	if chosen := r.models[0].alone; chosen != nil {
		return chosen.ID.Name
	}
	return ""
}

// withCost sets the price of the L40S.
func withCost(cost float64) func(*scenario) {
	return func(s *scenario) { s.variant("l40s").Cost = cost }
}

// pastLengths gives requests of 1,000 and 200 tokens other lengths before, and the L40S a price
// that is little less than that of the H100.
func pastLengths(prompt, output float64) func(*scenario) {
	return func(s *scenario) {
		withCost(0.9)(s)
		s.load(lengths(1000, 200, prompt, output))
	}
}

func TestWhoServesAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 64 s under the race detector")
	}
	for name, test := range map[string]struct {
		change func(*scenario)
		want   string
	}{
		"three L40S for less than an H100": {func(*scenario) {}, "l40s"},
		"the mix is cheaper":               {withCost(1.01), ""},
		"KEDA keeps the H100":              {func(s *scenario) { s.variant("h100").Range.Min = 1 }, ""},
		"the maximum is too low":           {func(s *scenario) { s.variant("l40s").Range.Max = 2 }, ""},
		"the minimum is too high":          {func(s *scenario) { s.variant("l40s").Range = fleet.Range{Min: 5, Max: 20, AllowsIdle: true} }, ""},
		"scale-down of the H100 is paused": {func(s *scenario) { s.variant("h100").Pause.In = true }, ""},
		"scale-up of the L40S is paused":   {func(s *scenario) { s.variant("l40s").Pause.Out = true }, ""},
		"a query failed":                   {func(s *scenario) { s.missing("window", "timeout") }, ""},
		"the peak is not known":            {func(s *scenario) { s.load(func(l *fleet.Load) { l.PeakCovered = false }) }, ""},
		"requests wait for more replicas":  {func(s *scenario) { s.gateway(2000, 16.5) }, ""},
		"the latest demand needs fewer":    {peakOf(22), ""},
		"the peak saves a third all the same": {func(s *scenario) {
			peakOf(22)(s)
			withCost(0.4)(s)
		}, "l40s"},
		"replicas do not start": {func(s *scenario) {
			w := &s.Workloads[1]
			w.Pods = append(w.Pods, fleet.Pod{Name: "l40s-late", Created: epoch.Add(-time.Hour), Waiting: "Unschedulable"})
			w.Replicas++
		}, ""},
		"three are free": {func(s *scenario) { s.node("L40S", "a", 3, 0).on("l40s", "a") }, "l40s"},
		"the H100 started two minutes ago": {func(s *scenario) {
			h100Started(2 * time.Minute)(s)
			s.served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
		}, "l40s"},
		"it did, and nothing is known of the demand before": {h100Started(2 * time.Minute), ""},
		"it did, and the demand has not lasted for longer":  {recentLoad, ""},
		"it did, and requests became shorter": {func(s *scenario) {
			h100Started(2 * time.Minute)(s)
			withCost(0.3)(s)
			s.load(lengths(1000, 200, 1250, 200))
		}, ""},
		"three for nine tenths of an H100":           {withCost(0.9), "l40s"},
		"and prompts are as long as before":          {pastLengths(1100, 220), "l40s"},
		"and prompts were a fifth longer before":     {pastLengths(1250, 200), ""},
		"and outputs were a fifth longer before":     {pastLengths(1000, 250), ""},
		"and requests were shorter before":           {pastLengths(500, 100), "l40s"},
		"prompts were longer, and it saves far more": {func(s *scenario) { pastLengths(1250, 200)(s); withCost(0.5)(s) }, "l40s"},
		"another H100 starts": {func(s *scenario) {
			w := &s.Workloads[0]
			w.Pods = append(w.Pods, fleet.Pod{Name: "h100-new", Created: epoch.Add(-time.Second)})
			w.Replicas++
		}, ""},
		"too few are free":     {func(s *scenario) { s.node("L40S", "a", 2, 0).on("l40s", "a") }, ""},
		"others have the rest": {func(s *scenario) { s.node("L40S", "a", 4, 2).on("l40s", "a") }, ""},
		"the demand has lasted": {func(s *scenario) {
			s.served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
		}, "l40s"},
		"the demand has not lasted": {func(s *scenario) {
			s.served(func(i int, p *fleet.LatencyPart) {
				rated(p, 16.5)
				if i == servedParts-1 {
					rated(p, 5)
				}
			})
		}, ""},
		"another model starts replicas": {func(s *scenario) {
			s.besideAnother(16, 0.6).node("L40S", "a", 9, 0).on("l40s", "a").on("other-cheap", "a")
		}, ""},
		"another model starts none": {func(s *scenario) {
			s.besideAnother(5, 0.2).node("L40S", "a", 9, 0).on("l40s", "a").on("other-cheap", "a")
		}, "l40s"},
		"another model starts elsewhere": {func(s *scenario) {
			s.besideAnother(16, 0.6).node("L40S", "a", 9, 0).on("l40s", "a")
			s.variant("other-cheap").Accelerator = "A100"
		}, "l40s"},
	} {
		s := oneH100(1)
		test.change(s)
		if got := s.alone(); got != test.want {
			t.Errorf("%s: %q serves alone, want %q", name, got, test.want)
		}
		s.decideWithin(t)
	}
}

// recentLoad is a demand that began six minutes ago, and started the H100.
func recentLoad(s *scenario) {
	h100Started(2 * time.Minute)(s)
	s.served(func(i int, p *fleet.LatencyPart) {
		rated(p, 16.5)
		if i < servedParts-2 {
			rated(p, 5)
		}
	})
}

// The mix keeps recent replicas, also if both variants serve as much beside each other as alone. If
// the choice depended on how the gateway splits the load, it would change every few cycles.
func TestOneVariantServesAloneHoweverTheLoadIsSplit(t *testing.T) {
	for _, each := range []float64{1, 1.5, 2, 2.5, 3, 3.5} {
		s := h100AndL40S(1, 3, [2]float64{16.5 - 3*each, each}, 100*time.Millisecond)
		withCost(0.7)(s)
		h100Started(2 * time.Minute)(s)
		s.served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
		if got := s.alone(); got != "l40s" {
			t.Errorf("%v requests/s at each L40S: %q serves alone", each, got)
		}
	}
}

// A bound that was lost by the question let recent replicas stop that no variant replaces.
func TestTheQuestionWhoServesAloneChangesNoBounds(t *testing.T) {
	for _, itl := range []time.Duration{23 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		s := h100AndL40S(2, 1, [2]float64{8, 0.5}, itl)
		recentLoad(s)
		r := roundOf(s.Snapshot)
		r.mix()
		for _, c := range r.models[0].candidates {
			want := append(r.bounds(r.models[0], &c), r.startsForCurrentDemand(r.models[0], c))
			if !slices.Equal(c.bounds, want) {
				t.Errorf("within %v, %s: bounds %+v, want %+v", itl, c.ID.Name, c.bounds, want)
			}
		}
	}
}

// h100Started lets the H100 be as old as that.
func h100Started(age time.Duration) func(*scenario) {
	return func(s *scenario) {
		pod := &s.Workloads[0].Pods[0]
		pod.Created, pod.ReadyAt = epoch.Add(-age), epoch.Add(-age/2)
	}
}

func peakOf(rate float64) func(*scenario) {
	return func(s *scenario) { s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(rate) }) }
}

// besideAnother adds a model with one L40S that serves 5 requests per second with a part of its KV
// cache, and gets so many.
func (s *scenario) besideAnother(arrivals, kv float64) *scenario {
	other := newScenario(cheap(group{ready: 1, running: 60, kv: kv, rate: 5, max: 4, accelerator: "L40S"})).gateway(0, arrivals)
	return s.beside("other", other.called("other-"))
}

// Pending replicas of a variant that is held want accelerators too: the plan would not fit, and
// another model would be preempted for a lower price.
func TestNothingIsTakenForALowerPrice(t *testing.T) {
	numbers := func(price float64) (all [2]int) {
		other := newScenario(cheap(group{ready: 4, running: 60, kv: 0.6, rate: 5, max: 4, accelerator: "L40S"})).called("other-")
		held := newScenario(fast(group{ready: 1, loading: 2, running: 10, kv: 0.3, rate: 2, accelerator: "L40S", mute: true}))
		s := oneH100(1).beside("other", other).beside("held", held.called("held-"))
		s.node("L40S", "a", 9, 0).on("l40s", "a").on("other-cheap", "a", "a", "a", "a").on("held-fast", "a")
		s.variant("l40s").Cost = price
		d := s.decideWithin(t)
		return [2]int{d["other-cheap"].Replicas, d["h100"].Replicas}
	}
	if low, high := numbers(0.7), numbers(1.5); low != high {
		t.Errorf("others have %v beside a model that would be cheaper on L40S, %v if not", low, high)
	}
}

// Models take turns: of two that would take the same accelerators one does.
func TestTwoModelsDoNotTakeTheSameAccelerators(t *testing.T) {
	s := oneH100(1)
	s.beside("second", oneH100(1).called("second-")).node("L40S", "a", 5, 0).on("l40s", "a").on("second-l40s", "a")
	d := s.decideWithin(t)
	if d["l40s"].Replicas != 3 || d["second-l40s"].Replicas > 1 {
		t.Errorf("%d and %d L40S, want three for one of the models", d["l40s"].Replicas, d["second-l40s"].Replicas)
	}
}

// A choice that makes accelerators short is withdrawn.
func TestChoiceIsWithdrawn(t *testing.T) {
	s := oneH100(1)
	x := newView(s.Snapshot, nil, Policy{}.withDefaults())
	r := x.newRound([]*sizedModel{x.sizeAll()[0].sized}, nil)
	r.mix()
	z := r.models[0]
	if z.alone == nil {
		t.Fatal("no variant serves alone")
	}
	if !r.chooseMixes() || z.alone != nil || z.candidates[1].share == z.candidates[1].alone || r.startable[z.candidates[1].option] > 1 {
		t.Errorf("after the choice is withdrawn: %+v, starts %v", z.candidates[1].capacity, r.startable)
	}
	for _, c := range z.candidates { // none has a limit of the choice that is withdrawn
		if want := append(r.bounds(z, &c), r.startsForCurrentDemand(z, c)); !slices.Equal(c.bounds, want) {
			t.Errorf("%s: bounds %+v, want %+v", c.ID.Name, c.bounds, want)
		}
	}
	if r.chooseMixes() {
		t.Error("withdrawn twice")
	}
}

// A rate that replicas served beside others is no evidence of the latency that they would have
// alone.
func TestAloneWithAnObjectiveNeedsACapacityByLatency(t *testing.T) {
	x := newView(oneH100(1).Snapshot, nil, Policy{}.withDefaults())
	r := &round{view: x}
	for _, sized := range x.sizeAll() {
		r.models = append(r.models, sized.sized)
	}
	z := r.models[0]
	for i := range z.candidates {
		c := &z.candidates[i]
		if c.bounds = r.bounds(z, c); c.ID.Name != "l40s" {
			continue
		}
		for basis, may := range map[analyzer.Basis]bool{
			analyzer.BasisProfile: true, analyzer.BasisCalibrated: true, analyzer.BasisLearned: true,
			analyzer.BasisObserved: false, analyzer.BasisSibling: false, analyzer.BasisArguments: false,
		} {
			own := *c
			own.capacity.Basis = basis
			if got := r.mayServeAlone(z, own); got != may {
				t.Errorf("capacity from %s: %t, want %t", basis, got, may)
			}
		}
		without, v := *c, *c.variant
		v.objective = fleet.Objective{}
		without.variant, without.capacity.Basis = &v, analyzer.BasisObserved
		if !r.mayServeAlone(z, without) {
			t.Error("without an objective, a rate that was served is enough")
		}
	}
}

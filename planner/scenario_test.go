package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// epoch is the time of every scenario's decision.
var epoch = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

const llama = "meta-llama/Llama-3.1-8B-Instruct"

// scenario builds a snapshot of one model, step by step.
type scenario struct{ fleet.Snapshot }

// group is a variant with its replicas, all of which report the same.
type group struct {
	name                  string
	cost                  float64
	min, max              int
	ready, loading, stuck int
	spec                  int // 0: as many as there are pods
	running, waiting, kv  float64
	rate                  float64 // first tokens per second of each replica
	mute                  bool    // reports nothing
	accelerator           fleet.Accelerator
	itl, objective        time.Duration
	kvTokens              float64
	usage                 func(*fleet.Usage)
	workload              func(*fleet.Workload)
	variant               func(*fleet.Variant)
	absent                bool // no workload row
	created               time.Time
	claims                string // another variant's target
	readyAt               time.Time
}

func newScenario(groups ...group) *scenario {
	s := &scenario{fleet.Snapshot{Time: epoch}}
	s.Accelerators = []fleet.AcceleratorSpec{{Name: "L40S", Speed: 1}, {Name: "H100", Speed: 4}}
	var rate, inFlight float64
	for _, g := range groups {
		s.add(g)
		if !g.mute {
			rate += float64(g.ready) * g.rate
			inFlight += float64(g.ready) * (g.running + g.waiting)
		}
	}
	if inFlight > 0 || rate > 0 {
		s.Loads = append(s.Loads, fleet.Load{
			Namespace: "shop", Model: llama, Source: fleet.SourceEngine, Time: epoch,
			PeakArrivals: fleet.Observed(rate), PeakInFlight: fleet.Observed(inFlight), PeakCovered: true,
			LastActive: epoch, IdleCovered: 10 * time.Minute,
			PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(200),
		})
	}
	return s
}

// measuredLengths gives the requests histograms of their lengths.
func (s *scenario) measuredLengths() *scenario {
	return s.load(func(l *fleet.Load) {
		l.PromptLengths, l.PromptTokens = truthLengths{mean: 1000, sigma: 0.83, most: 1e5}.histogram()
		l.OutputLengths, l.OutputTokens = truthLengths{mean: 200, sigma: 0.83, most: 1e5}.histogram()
	})
}

func (s *scenario) add(g group) {
	target := fleet.TargetID{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: g.name}
	v := fleet.Variant{
		ID: fleet.VariantID{Namespace: "shop", Name: g.name}, Model: fleet.ModelID{Namespace: "shop", Name: llama}, Target: target,
		Accelerator: g.accelerator, GPUsPerReplica: 1, Cost: g.cost, Role: fleet.RoleBoth, Engine: fleet.EngineVLLM,
		Objective: fleet.Objective{ITL: g.objective}, Range: fleet.Range{Min: g.min, Max: g.max}, Created: g.created,
	}
	if g.claims != "" {
		v.Target.Name = g.claims
	}
	if g.variant != nil {
		g.variant(&v)
	}
	s.Variants = append(s.Variants, v)
	if g.absent || g.claims != "" {
		return
	}
	w := fleet.Workload{ID: target, Replicas: g.spec, Startup: time.Minute, KVTokens: g.kvTokens}
	if w.Replicas == 0 {
		w.Replicas = g.ready + g.loading + g.stuck
	}
	pod := func(kind string, i int, age time.Duration) fleet.Pod {
		return fleet.Pod{Name: fmt.Sprintf("%s-%s-%d", g.name, kind, i), Created: epoch.Add(-age)}
	}
	for i := range g.ready {
		p := pod("ready", i, time.Hour)
		p.Ready, p.ReadyAt = true, epoch.Add(-50*time.Minute)
		if !g.readyAt.IsZero() {
			p.ReadyAt = g.readyAt
		}
		w.Pods = append(w.Pods, p)
		if !g.mute {
			s.report(g, p.Name)
		}
	}
	for i := range g.loading {
		w.Pods = append(w.Pods, pod("loading", i, 30*time.Second))
	}
	for i := range g.stuck {
		p := pod("stuck", i, 10*time.Minute)
		p.Waiting = "Unschedulable"
		w.Pods = append(w.Pods, p)
	}
	if g.workload != nil {
		g.workload(&w)
	}
	s.Workloads = append(s.Workloads, w)
}

func (s *scenario) report(g group, pod string) {
	u := fleet.Usage{
		Namespace: "shop", Pod: pod, Model: llama, Time: epoch, Running: fleet.Observed(g.running), Waiting: fleet.Observed(g.waiting),
		KV: fleet.Observed(g.kv), KVTokens: fleet.Observed(200_000), FirstTokens: fleet.Observed(g.rate), MeanRate: fleet.Observed(g.rate), Scrapes: 4,
		WaitingGrowth: fleet.Observed(0), PeakRate: fleet.Observed(100),
	}
	if g.itl > 0 {
		u.ITL = fleet.Observed(g.itl.Seconds())
	}
	if g.usage != nil {
		g.usage(&u)
	}
	s.Usages = append(s.Usages, u)
}

// load changes the load of the engines.
func (s *scenario) load(change func(*fleet.Load)) *scenario {
	at := slices.IndexFunc(s.Loads, func(l fleet.Load) bool { return l.Source == fleet.SourceEngine })
	if at < 0 {
		at, s.Loads = 0, slices.Insert(s.Loads, 0, fleet.Load{Namespace: "shop", Model: llama, Source: fleet.SourceEngine, Time: epoch})
	}
	change(&s.Loads[at])
	return s
}

// gateway adds the load of a gateway, or replaces it.
func (s *scenario) gateway(queued, arrivals float64) *scenario {
	s.Loads = slices.DeleteFunc(s.Loads, func(l fleet.Load) bool { return l.Source == fleet.SourceGateway && l.Model == llama })
	s.Loads = append(s.Loads, fleet.Load{
		Namespace: "shop", Model: llama, Source: fleet.SourceGateway, Time: epoch,
		Queued: fleet.Observed(queued), Arrivals: fleet.Observed(arrivals), PeakArrivals: fleet.Observed(arrivals), IdleCovered: 10 * time.Minute,
	})
	return s
}

// scaleToZero allows the model to scale to zero, as its variants without a minimum do: a gateway
// would see its requests, and sees none.
func (s *scenario) scaleToZero() *scenario { return s.gateway(0, 0) }

// previous adds the previous decision for a variant, and how long ago it was made.
func (s *scenario) previous(name string, replicas int, ago time.Duration) *scenario {
	s.Previous = append(s.Previous, fleet.PreviousDecision{Variant: fleet.VariantID{Namespace: "shop", Name: name}, Replicas: replicas, Decided: epoch.Add(-ago)})
	return s
}

// missing adds a query that failed.
func (s *scenario) missing(source, why string) *scenario {
	s.Missing = append(s.Missing, fleet.Missing{Source: source, Reason: why, Hides: fleet.SourceGateway})
	return s
}

// decide returns the decision for each variant by its name.
func (s *scenario) decide(t *testing.T) map[string]fleet.Decision {
	t.Helper()
	decisions := map[string]fleet.Decision{}
	for _, d := range Plan(s.Snapshot, Policy{}).Decisions {
		if _, twice := decisions[d.Variant.Name]; twice {
			t.Fatalf("%s is decided twice", d.Variant)
		}
		if d.Reason.Code == "" || d.Reason.String() == "" {
			t.Fatalf("%s has no reason: %+v", d.Variant, d)
		}
		decisions[d.Variant.Name] = d
	}
	if len(decisions) != len(s.Variants) {
		t.Fatalf("%d of %d variants are decided", len(decisions), len(s.Variants))
	}
	return decisions
}

// expect checks one decision.
func expect(t *testing.T, d fleet.Decision, replicas int, code fleet.Code) {
	t.Helper()
	if d.Replicas != replicas || d.Reason.Code != code || !d.Known {
		t.Errorf("%s: %d replicas (known %v), %s: %s; want %d, %s", d.Variant.Name, d.Replicas, d.Known, d.Reason.Code, d.Reason.String(), replicas, code)
	}
}

// problem returns one validation error.
func problem(text, remedy string) []fleet.Problem {
	return []fleet.Problem{{Text: text, Remedy: remedy}}
}

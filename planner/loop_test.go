package planner

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// loop is a fleet that carries out its plans: pods are created and deleted, accelerators are
// allocated, requests queue.
type loop struct {
	now      time.Time
	models   []*loopModel
	nodes    []fleet.Node // of L40S
	leaves   time.Duration
	previous []fleet.PreviousDecision
	random   *rand.Rand
}

// loopModel is a model of one variant. A replica serves 6 requests/s on one accelerator.
type loopModel struct {
	name          string
	priority      int
	rate          func(at time.Duration) float64
	wanted        int
	pods          []*loopPod
	made          int
	queue         float64
	rates         []float64
	arrived, done float64
	last, turns   int // the sign of the last change, and how often it changed
}

type loopPod struct {
	name                 string
	created, ready, gone time.Time // ready and gone are zero while unknown
	node                 string
}

const (
	loopStep     = 15 * time.Second
	loopStart    = time.Minute
	loopCapacity = 6.0
)

// run makes a plan every 15 seconds for two hours.
func (l *loop) run() {
	l.now, l.random = epoch, rand.New(rand.NewPCG(1, 2))
	for range int(2 * time.Hour / loopStep) {
		for _, m := range l.models {
			m.reap(l.now)
			m.follow(l.now, l.leaves)
			m.reap(l.now)
		}
		l.place()
		plan := Plan(l.snapshot(), Policy{})
		l.previous = plan.Previous()
		for _, d := range plan.Decisions {
			m := l.models[slices.IndexFunc(l.models, func(m *loopModel) bool { return m.name == d.Variant.Name })]
			if turn := cmp.Compare(d.Replicas, m.wanted); turn != 0 {
				if m.last != 0 && turn != m.last {
					m.turns++
				}
				m.last, m.wanted = turn, d.Replicas
			}
		}
		l.now = l.now.Add(loopStep)
	}
}

// reap removes deleted pods.
func (m *loopModel) reap(now time.Time) {
	m.pods = slices.DeleteFunc(m.pods, func(p *loopPod) bool { return !p.gone.IsZero() && !now.Before(p.gone) })
}

// follow creates pods, or deletes them: first those that are not scheduled, then those that are not
// ready, then the newest.
func (m *loopModel) follow(now time.Time, leaves time.Duration) {
	var stay []*loopPod
	for _, p := range m.pods {
		if p.gone.IsZero() {
			stay = append(stay, p)
		}
	}
	for ; len(stay) < m.wanted; m.made++ {
		p := &loopPod{name: fmt.Sprintf("%s-%03d", m.name, m.made), created: now}
		m.pods, stay = append(m.pods, p), append(stay, p)
	}
	slices.SortStableFunc(stay, func(a, b *loopPod) int {
		return cmp.Or(-compareBool(a.node == "", b.node == ""), -compareBool(a.ready.After(now), b.ready.After(now)), b.created.Compare(a.created))
	})
	for _, p := range stay[:len(stay)-m.wanted] {
		if p.gone = now; p.node != "" {
			p.gone = now.Add(leaves)
		}
	}
}

// place schedules the pods that are pending longest onto the nodes with the most free accelerators.
func (l *loop) place() {
	var waiting []*loopPod
	for _, m := range l.models {
		for _, p := range m.pods {
			if p.node == "" {
				waiting = append(waiting, p)
			}
		}
	}
	slices.SortStableFunc(waiting, func(a, b *loopPod) int { return a.created.Compare(b.created) })
	for _, p := range waiting {
		best := slices.MinFunc(l.nodes, func(a, b fleet.Node) int { return cmp.Compare(l.free(b), l.free(a)) })
		if l.free(best) > 0 {
			p.node, p.ready = best.Name, l.now.Add(loopStart)
		}
	}
}

// free returns the free accelerators of a node.
func (l *loop) free(node fleet.Node) int {
	free := node.Allocatable
	for _, m := range l.models {
		for _, p := range m.pods {
			if p.node == node.Name {
				free--
			}
		}
	}
	return free
}

// serves reports whether the pod serves.
func (p *loopPod) serves(now time.Time) bool {
	return p.gone.IsZero() && p.node != "" && !now.Before(p.ready)
}

func (l *loop) snapshot() fleet.Snapshot {
	s := newScenario()
	s.Time, s.Previous = l.now, l.previous
	for _, node := range l.nodes {
		s.node("L40S", node.Name, node.Allocatable, node.Allocatable-l.free(node))
	}
	for _, m := range l.models {
		g := cheap(group{})
		g.name, g.objective, g.max = m.name, 0, 10
		s.add(g)
		v, w := &s.Variants[len(s.Variants)-1], &s.Workloads[len(s.Workloads)-1]
		v.Model.Name = m.name
		s.class(m.name, fmt.Sprint("class ", m.priority), m.priority)
		w.Replicas = m.wanted
		for _, p := range m.pods {
			row := fleet.Pod{Name: p.name, Created: p.created, Terminating: !p.gone.IsZero()}
			if p.node == "" {
				row.Waiting = "Unschedulable"
			} else if row.Nodes = []string{p.node}; !l.now.Before(p.ready) {
				row.Ready, row.ReadyAt = true, p.ready
			}
			w.Pods = append(w.Pods, row)
		}
		l.observe(s, m)
	}
	return s.Snapshot
}

// observe lets requests of one step arrive and be served, and adds the metrics of engines and
// gateway.
func (l *loop) observe(s *scenario, m *loopModel) {
	var serving []string
	for _, p := range m.pods {
		if p.serves(l.now) {
			serving = append(serving, p.name)
		}
	}
	replicas, rate := float64(len(serving)), m.rate(l.now.Sub(epoch))*(0.9+0.2*l.random.Float64())
	served, part := min(rate+m.queue/30, replicas*loopCapacity), 1/max(1, replicas)
	// users give up after a minute
	m.queue = min(max(0, m.queue+(rate-served)*loopStep.Seconds()), 60*rate)
	m.arrived, m.done = m.arrived+rate, m.done+min(rate, served)
	m.rates = append(m.rates[max(0, len(m.rates)-39):], rate)
	load := served * part / loopCapacity
	for _, pod := range serving {
		s.Usages = append(s.Usages, fleet.Usage{
			Namespace: "shop", Pod: pod, Model: m.name, Time: l.now, Running: fleet.Observed(100 * load), Waiting: fleet.Observed(m.queue * part),
			KV: fleet.Observed(0.92 * load), KVTokens: fleet.Observed(200_000), FirstTokens: fleet.Observed(served * part), MeanRate: fleet.Observed(served * part), Scrapes: 4,
			WaitingGrowth: fleet.Observed(max(0, rate-served) * part), LeastWaiting: fleet.Observed(max(0, m.queue-60*max(0, rate-served)) * part), PeakRate: fleet.Observed(loopCapacity),
		})
	}
	queued := m.queue
	if replicas > 0 {
		queued = 0
		s.Loads = append(s.Loads, fleet.Load{
			Namespace: "shop", Model: m.name, Source: fleet.SourceEngine, Time: l.now, LastActive: l.now, IdleCovered: 10 * time.Minute,
			PeakArrivals: fleet.Observed(slices.Max(m.rates)), PeakInFlight: fleet.Observed(100 * load * replicas), PeakCovered: true,
			PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(200),
		})
	}
	s.Loads = append(s.Loads, fleet.Load{
		Namespace: "shop", Model: m.name, Source: fleet.SourceGateway, Time: l.now, LastActive: l.now, IdleCovered: 10 * time.Minute,
		Queued: fleet.Observed(queued), Arrivals: fleet.Observed(rate), PeakArrivals: fleet.Observed(rate),
	})
}

func flat(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// wave is a load that goes up and down once an hour.
func wave(phase float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return 14 + 8*math.Sin(2*math.Pi*at.Hours()+phase) }
}

// fourGPUs is two models on two nodes of two accelerators.
func fourGPUs(a, b *loopModel, leaves time.Duration) *loop {
	a.name, b.name = "a", "b"
	return &loop{models: []*loopModel{a, b}, leaves: leaves, nodes: []fleet.Node{{Name: "l1", Allocatable: 2}, {Name: "l2", Allocatable: 2}}}
}

func TestEqualModelsInAShortageDoNotOscillate(t *testing.T) {
	for _, leaves := range []time.Duration{0, 2 * time.Minute} {
		a, b := &loopModel{wanted: 3, rate: flat(20)}, &loopModel{wanted: 1, rate: flat(20)}
		fourGPUs(a, b, leaves).run()
		if a.turns+b.turns > 0 || a.wanted != 2 || b.wanted != 2 {
			t.Errorf("pods leave within %v: %d and %d replicas after %d and %d turns, want two each and none", leaves, a.wanted, b.wanted, a.turns, b.turns)
		}
	}
}

func TestEqualModelsShareAcceleratorsThroughWavesOfLoad(t *testing.T) {
	for _, leaves := range []time.Duration{0, 2 * time.Minute} {
		a, b := &loopModel{wanted: 2, rate: wave(0)}, &loopModel{wanted: 2, rate: wave(math.Pi)}
		fourGPUs(a, b, leaves).run()
		if a.turns > 6 || b.turns > 6 {
			t.Errorf("pods leave within %v: %d and %d turns in two waves, want hardly more than those of the waves", leaves, a.turns, b.turns)
		}
		if one, other := a.done/a.arrived, b.done/b.arrived; min(one, other) < 0.7 || math.Abs(one-other) > 0.05 {
			t.Errorf("pods leave within %v: %.2f and %.2f are served, want equal shares above 0.7", leaves, one, other)
		}
	}
}

func TestHigherPriorityLeavesTheOtherModelItsLastReplica(t *testing.T) {
	a, b := &loopModel{wanted: 2, rate: flat(30), priority: 5}, &loopModel{wanted: 2, rate: flat(20)}
	fourGPUs(a, b, 30*time.Second).run()
	if a.turns+b.turns > 0 || a.wanted != 3 || b.wanted != 1 {
		t.Errorf("%d and %d replicas after %d and %d turns, want three and one, and none", a.wanted, b.wanted, a.turns, b.turns)
	}
}

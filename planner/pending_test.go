package planner

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// growingVariant is a variant whose number is carried out: pods get one node each while there are
// nodes, start within a minute, and leave at once, the youngest without a node first.
type growingVariant struct {
	group    group
	capacity float64 // requests per second of a replica
	nodes    int
	pods     []growingPod // the oldest first
}

// growingPod is a pod by the times since the start.
type growingPod struct {
	created, scheduled time.Duration
	hasNode            bool
}

func (v *growingVariant) follow(replicas int, at time.Duration) {
	for len(v.pods) < replicas {
		v.pods = append(v.pods, growingPod{created: at})
	}
	slices.SortStableFunc(v.pods, func(a, b growingPod) int { return compareBool(b.hasNode, a.hasNode) })
	v.pods = v.pods[:replicas]
	used := 0
	for i := range v.pods {
		p := &v.pods[i]
		if !p.hasNode && used < v.nodes {
			p.hasNode, p.scheduled = true, at
		}
		if p.hasNode {
			used++
		}
	}
}

func (v *growingVariant) count(is func(growingPod) bool) (n int) {
	for _, p := range v.pods {
		if is(p) {
			n++
		}
	}
	return n
}

func isPending(p growingPod) bool { return !p.hasNode }

// row returns the variant with its pods at a time, of which each ready one serves a share of its
// capacity.
func (v *growingVariant) row(at time.Duration, share float64) group {
	g := v.group
	g.ready = v.ready(at)
	g.rate, g.running, g.kv = v.capacity*share, 4*v.capacity*share, kvTarget*share
	g.workload = func(w *fleet.Workload) {
		w.Replicas, w.Pods = len(v.pods), nil
		for _, p := range v.pods {
			pod := fleet.Pod{Created: epoch.Add(p.created - at), Waiting: unschedulable}
			if p.hasNode {
				pod.Waiting, pod.ScheduledAt = "", epoch.Add(p.scheduled-at)
			}
			kind := "waiting"
			if pod.Ready = p.hasNode && at-p.scheduled >= time.Minute; pod.Ready {
				pod.ReadyAt, kind = pod.ScheduledAt.Add(time.Minute), "ready"
			}
			pod.Name = fmt.Sprintf("%s-%s-%d", g.name, kind, len(w.Pods))
			w.Pods = append(w.Pods, pod)
		}
		slices.SortStableFunc(w.Pods, func(a, b fleet.Pod) int { return compareBool(b.Ready, a.Ready) })
		for i := range g.ready {
			w.Pods[i].Name = fmt.Sprintf("%s-ready-%d", g.name, i)
		}
	}
	return g
}

func (v *growingVariant) ready(at time.Duration) int {
	return v.count(func(p growingPod) bool { return p.hasNode && at-p.scheduled >= time.Minute })
}

// A type with two nodes is full for forty minutes, and then gets six more. The other type serves a
// part of the demand. Nothing is remembered from one decision to the next but the numbers.
func TestFullTypeIsTriedAllTheTimeAndFillsUp(t *testing.T) {
	const more = 40 * time.Minute
	slow, quick := cheap(group{}), fast(group{})
	slow.max, quick.max = 10, 1
	l40s := &growingVariant{group: slow, capacity: 6, nodes: 2}
	h100 := &growingVariant{group: quick, capacity: 24, nodes: 100}
	l40s.follow(2, 0)
	turns, last := 0, 0
	for at := 2 * time.Minute; at < 90*time.Minute; at += 15 * time.Second {
		if at >= more {
			l40s.nodes = 8
		}
		capacity := l40s.capacity*float64(l40s.ready(at)) + h100.capacity*float64(h100.ready(at))
		share := min(1, 60/capacity)
		s := newScenario(l40s.row(at, share), h100.row(at, share)).gateway(0, 60)
		d := s.decide(t)
		before := len(l40s.pods)
		l40s.follow(d[slow.name].Replicas, at)
		h100.follow(d[quick.name].Replicas, at)
		if turn := cmp.Compare(len(l40s.pods), before); turn != 0 {
			if turn != last && last != 0 {
				turns++
			}
			last = turn
		}
		switch pending := l40s.count(isPending); {
		case at > 8*time.Minute && at < more && pending != 1:
			t.Errorf("after %v, %d L40S are Pending, want one: %v", at, pending, d[slow.name].Reason)
		case at > 6*time.Minute && capacity < 36:
			t.Errorf("after %v, ready replicas serve %v req/s, want 36", at, capacity)
		case at > more+15*time.Minute && pending > 0:
			t.Errorf("after %v, %d L40S are Pending", at, pending)
		}
	}
	if n := l40s.ready(90 * time.Minute); n < 6 {
		t.Errorf("%d L40S are ready in the end, want those of the further nodes too", n)
	}
	if turns > 2 {
		t.Errorf("the number of L40S changed its direction %d times", turns)
	}
}

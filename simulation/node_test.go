package simulation

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// limited is a fleet of one variant and one node with so many GPUs.
func limited(gpus int, change func(*VariantSpec)) FleetSpec {
	spec := oneVariant(change)
	spec.Variants[0].Accelerator = "L40S"
	spec.Nodes = []NodeSpec{{Name: "a", Accelerator: "L40S", GPUs: gpus}}
	return spec
}

// beside is a fleet of two variants at zero on the given nodes. A replica of the first needs two
// GPUs, of the second one.
func beside(nodes ...NodeSpec) FleetSpec {
	spec := oneVariant(func(v *VariantSpec) { v.Initial, v.Accelerator, v.GPUs = 0, "L40S", 2 })
	small := spec.Variants[0]
	small.ID.Name, small.Target.Name, small.GPUs = "small", "small", 1
	spec.Variants = append(spec.Variants, small)
	for i := range nodes {
		nodes[i].Accelerator = "L40S"
	}
	spec.Nodes = nodes
	return spec
}

// nodesOf returns the nodes of a target's replicas in their order, "-" for a replica without a
// node.
func nodesOf(f *Fleet, target string) string {
	var nodes []string
	for _, w := range f.Workloads() {
		if w.ID.Name != target {
			continue
		}
		for _, p := range w.Pods {
			if len(p.Nodes) == 0 {
				nodes = append(nodes, "-")
			}
			nodes = append(nodes, p.Nodes...)
		}
	}
	return strings.Join(nodes, " ")
}

func TestReplicasSpreadOverNodesByTheirFreeShare(t *testing.T) {
	f := newFleet(t, beside(NodeSpec{Name: "b", GPUs: 4}, NodeSpec{Name: "a", GPUs: 4}, NodeSpec{Name: "c", GPUs: 8, Others: 5}))
	scale(t, f, "small", 12)
	// a and b have 3 of 4 free after one replica, then 2 of 4. c has 2 of 8 free, a and b after
	// three.
	if got := nodesOf(f, "small"); got != "a b a b a b c c a b c -" {
		t.Errorf("scheduled to %s", got)
	}
}

func TestAReplicaIsOnOneNode(t *testing.T) {
	f := newFleet(t, beside(NodeSpec{Name: "a", GPUs: 3}, NodeSpec{Name: "b", GPUs: 3}))
	scale(t, f, "llama-l40s", 3)
	if got := nodesOf(f, "llama-l40s"); got != "a b -" {
		t.Errorf("scheduled to %s, though two nodes have one free GPU each", got)
	}
	scale(t, f, "small", 3)
	if got := nodesOf(f, "small"); got != "a b -" {
		t.Errorf("a pending replica blocks smaller ones: %s", got)
	}
}

func TestPendingReplicasOfAllVariantsAreScheduledByAge(t *testing.T) {
	spec := beside(NodeSpec{Name: "a", GPUs: 1})
	spec.Variants[0].GPUs = 1
	f := newFleet(t, spec)
	scaled := []string{"small", "llama-l40s", "small", "llama-l40s"}
	for i, name := range scaled {
		f.Advance(float64(10 * i))
		scale(t, f, name, 1+i/2)
	}
	var order []string
	for range scaled {
		for _, p := range slices.Concat(f.variants[0].pods, f.variants[1].pods) {
			if p.state == loading {
				order = append(order, p.name)
				f.remove(p)
				break
			}
		}
	}
	if got := strings.Join(order, " "); got != "small-0 llama-l40s-0 small-1 llama-l40s-1" {
		t.Errorf("scheduled in the order %s", got)
	}
}

func TestPoolsShowAllAllocatedAccelerators(t *testing.T) {
	spec := beside(NodeSpec{Name: "b", GPUs: 4, Others: 1}, NodeSpec{Name: "a", GPUs: 2})
	spec.Nodes = append(spec.Nodes, NodeSpec{Name: "0", Accelerator: "H100", GPUs: 8})
	spec.Variants[0].Initial = 1
	f := newFleet(t, spec)
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 10, Output: 1000})
	f.Advance(1)
	scale(t, f, "small", 1) // loads
	scale(t, f, "llama-l40s", 0)
	pools := func(a, b int) []fleet.Pool {
		return []fleet.Pool{
			{Accelerator: "H100", Nodes: []fleet.Node{{Name: "0", Allocatable: 8}}},
			{Accelerator: "L40S", Nodes: []fleet.Node{{Name: "a", Allocatable: 2, Allocated: a}, {Name: "b", Allocatable: 4, Allocated: b}}},
		}
	}
	if got := f.Pools(); f.States()[0].Draining != 1 || !reflect.DeepEqual(got, pools(1, 3)) {
		t.Errorf("while one drains: %+v", got)
	}
	if got := nodesOf(f, "llama-l40s"); got != "b" {
		t.Errorf("the draining replica is on %q", got)
	}
	f.Advance(100)
	if got := f.Pools(); !reflect.DeepEqual(got, pools(1, 1)) {
		t.Errorf("after the drain: %+v", got)
	}
}

func TestAnAcceleratorTypeWithoutNodesIsUnlimited(t *testing.T) {
	spec := limited(1, nil)
	spec.Variants[0].Accelerator = "H100"
	f := newFleet(t, spec)
	scale(t, f, "llama-l40s", 50)
	if s := f.States()[0]; s.Pending != 0 || s.Loading != 49 || nodesOf(f, "llama-l40s")[:1] != "-" {
		t.Errorf("%+v", s)
	}
	if got := newFleet(t, oneVariant(nil)).Pools(); got != nil {
		t.Errorf("a fleet without nodes has pools %+v", got)
	}
}

func TestInitialReplicasAreScheduledToNodes(t *testing.T) {
	f := newFleet(t, limited(2, func(v *VariantSpec) { v.Initial = 3 }))
	if s := f.States()[0]; s.Ready != 2 || s.Pending != 1 {
		t.Fatalf("%+v", s)
	}
	scale(t, f, "llama-l40s", 3)
	if got := nodesOf(f, "llama-l40s"); got != "a a -" {
		t.Errorf("scheduled to %s", got)
	}
}

// TestAllocatedAcceleratorsNeverExceedANode scales at random, and sums up the accelerators of the
// pods on each node after each step.
func TestAllocatedAcceleratorsNeverExceedANode(t *testing.T) {
	pending, drained := 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		spec := mixed()
		for i := range spec.Variants {
			v := &spec.Variants[i]
			v.Accelerator = []fleet.Accelerator{"L40S", "H100"}[random.IntN(2)]
			v.GPUs, v.Startup, v.Grace = 1<<random.IntN(3), 5, 8
		}
		for i := range 1 + random.IntN(6) {
			n := NodeSpec{Name: string(rune('a' + i)), Accelerator: []fleet.Accelerator{"L40S", "H100"}[random.IntN(2)], GPUs: 1 + random.IntN(8)}
			n.Others = random.IntN(n.GPUs + 1)
			spec.Nodes = append(spec.Nodes, n)
		}
		f := newFleet(t, spec)
		offer(t, f, seeded(seed, 200, 5, 500, 200)...)
		for f.Now() < 60 {
			scale(t, f, []string{"llama-l40s", "llama-h100", "small"}[random.IntN(3)], random.IntN(7))
			checkNodes(t, f)
			f.Advance(f.Now() + 3*random.Float64())
			checkNodes(t, f)
			for _, s := range f.States() {
				pending, drained = pending+s.Pending, drained+s.Draining
			}
		}
		for _, name := range []string{"llama-l40s", "llama-h100", "small"} {
			scale(t, f, name, 0)
		}
		f.Advance(math.Inf(1))
		for i, n := range f.nodes {
			if n.allocated != 0 || len(f.pending) != 0 {
				t.Fatalf("seed %d: on node %d are %d allocated, and %d pending", seed, i, n.allocated, len(f.pending))
			}
		}
	}
	if pending == 0 || drained == 0 {
		t.Errorf("%d were pending and %d drained: the cases are too easy", pending, drained)
	}
}

func checkNodes(t *testing.T, f *Fleet) {
	t.Helper()
	allocated := map[string]int{}
	for _, n := range f.nodes {
		allocated[n.Name] = n.Others
	}
	for i, w := range f.Workloads() {
		v := f.variants[i]
		for _, p := range w.Pods {
			if (p.Waiting == "Unschedulable") != (len(p.Nodes) == 0 && len(v.nodes) > 0) {
				t.Fatalf("at %v: %+v", f.Now(), p)
			}
			for _, name := range p.Nodes {
				allocated[name] += v.GPUs
			}
		}
		if n, found := v.findNode(); found && n != nil && f.States()[i].Pending > 0 {
			t.Fatalf("at %v: node %s has enough free GPUs for %s, and replicas are pending", f.Now(), n.Name, v.ID)
		}
	}
	for _, pool := range f.Pools() {
		for _, n := range pool.Nodes {
			if n.Allocated > n.Allocatable || n.Allocated != allocated[n.Name] {
				t.Fatalf("at %v: node %s has %d GPUs, shows %d as allocated, and %d are allocated to its pods",
					f.Now(), n.Name, n.Allocatable, n.Allocated, allocated[n.Name])
			}
		}
	}
}

func TestNewFleetReportsAllValidationErrorsOfNodes(t *testing.T) {
	spec := beside(NodeSpec{Name: "a", GPUs: 4, Others: 5}, NodeSpec{Name: "a", GPUs: 4}, NodeSpec{Name: "b"}, NodeSpec{GPUs: 1})
	_, err := NewFleet(spec)
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, part := range []string{"node a: 5 of 4 GPUs are allocated to others", "node a is defined twice", "node b: 0 GPUs", `node "" with accelerator "L40S"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

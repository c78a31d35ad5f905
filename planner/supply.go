package planner

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// supply is the accelerator types with a limit, as far as the variants of an index may use them.
// The zero value limits nothing.
type supply struct {
	types    []*typeSupply // by name
	byName   map[fleet.Accelerator]*typeSupply
	holdings []solver.Holding
}

// typeSupply is the accelerators of one type.
type typeSupply struct {
	pool        solver.Pool
	at          map[string]int // index of a node by its name
	allocatable []int          // by node: its allocatable accelerators
	// by node: not allocated; negative if more are allocated than allocatable
	free      []int
	own       []int       // by node: allocated by replicas of the variants
	live      []int       // by node: the part of own that is not terminating
	requested int         // accelerators of current or scheduled replicas, whichever are more
	slots     map[int]int // by accelerators of a share: how many shares fit beside live ones
	used      int         // accelerators that the plan uses
	shortFor  []*sizing   // models that lack this type; nil until calculated
	keeper    *variant    // the variant whose minimum needs all; nil if there is none
}

// unlimited is more replicas than any range allows.
const unlimited = math.MaxInt32

// countSupply counts the accelerators that the variants may use, and for each variant the most
// replicas that fit.
func (x *index) countSupply() {
	x.supply = newSupply(x.pools, x.owners(), func(*variant, *fleet.Pod) bool { return true })
	for v := range x.owners() {
		v.mostPlaceable = x.supply.mostPlaceable(v)
	}
}

// newSupply counts the accelerators that the variants may use: those that others have not
// allocated. Pods for which counts returns false are treated as pods of others.
func newSupply(pools []fleet.Pool, variants iter.Seq[*variant], counts func(*variant, *fleet.Pod) bool) supply {
	s := supply{byName: make(map[fleet.Accelerator]*typeSupply)}
	for _, pool := range oneRowPerAccelerator(pools) {
		if pool.Elastic && pool.Limit <= 0 {
			continue
		}
		k := newTypeSupply(pool)
		s.types, s.byName[pool.Accelerator] = append(s.types, k), k
	}
	if len(s.types) == 0 {
		return supply{}
	}
	for v := range variants {
		if k, limited := s.of(v); limited {
			s.enter(v, k, counts)
		}
	}
	for _, k := range s.types {
		k.count()
	}
	return s
}

func newTypeSupply(pool fleet.Pool) *typeSupply {
	k := &typeSupply{
		pool: solver.Pool{Accelerator: pool.Accelerator, Elastic: pool.Elastic, Limit: pool.Limit},
		at:   make(map[string]int, len(pool.Nodes)), slots: make(map[int]int),
	}
	if pool.Elastic {
		return k
	}
	for _, node := range pool.Nodes {
		k.add(node.Name, within(node.Allocatable), within(node.Allocated))
	}
	return k
}

// within limits a number of accelerators, so that sums do not overflow.
func within(n int) int { return max(0, min(n, math.MaxInt32)) }

// add adds a node and returns its index.
func (k *typeSupply) add(name string, allocatable, allocated int) int {
	i := len(k.pool.Nodes)
	k.at[name] = i
	k.pool.Nodes = append(k.pool.Nodes, solver.Node{Name: name})
	k.allocatable, k.free = append(k.allocatable, allocatable), append(k.free, allocatable-allocated)
	k.own, k.live = append(k.own, 0), append(k.live, 0)
	return i
}

// enter records the accelerators of a variant's replicas.
func (s *supply) enter(v *variant, k *typeSupply, counts func(*variant, *fleet.Pod) bool) {
	gpus, shares := v.shape()
	k.requested += min(unlimited, max(v.now, v.scheduled)) * gpus * shares
	if k.pool.Elastic {
		return
	}
	for i := range v.workload.Pods {
		pod := &v.workload.Pods[i]
		if !counts(v, pod) {
			continue
		}
		nodes := v.nodesOf(pod, shares)
		for _, name := range nodes {
			k.allocate(name, gpus, pod.Terminating)
		}
		if !pod.Terminating && len(nodes) == shares {
			s.holdings = append(s.holdings, solver.Holding{Variant: v.ID, Nodes: nodes})
		}
	}
}

// nodesOf returns the nodes of a replica. A ready replica is on some node even if the node is not
// known.
func (v *variant) nodesOf(pod *fleet.Pod, shares int) []string {
	if len(pod.Nodes) > 0 || !pod.Ready || pod.Terminating {
		return pod.Nodes
	}
	unseen := make([]string, shares)
	for i := range unseen {
		unseen[i] = v.ID.String() + "/" + pod.Name // a node name has no slash
	}
	return unseen
}

// allocations returns the nodes of the scheduled replicas that are not terminating, by name.
func (v *variant) allocations(shares int) [][]string {
	pods := slices.SortedFunc(slices.Values(v.workload.Pods), func(a, b fleet.Pod) int { return cmp.Compare(a.Name, b.Name) })
	nodes := make([][]string, 0, v.scheduled)
	for i := range pods {
		if own := v.nodesOf(&pods[i], shares); len(own) > 0 && !pods[i].Terminating {
			nodes = append(nodes, own)
		}
	}
	return nodes
}

// allocate records that a replica has accelerators of a node. A node that the pool does not have
// (it was removed, or has a label other than the variant says) is added with these accelerators and
// no more: a running replica is not removed for that.
func (k *typeSupply) allocate(name string, gpus int, leaves bool) {
	i, found := k.at[name]
	switch {
	case !found && leaves:
		return
	case !found:
		i = k.add(name, 0, 0)
	}
	k.own[i] += gpus
	if !leaves {
		k.live[i] += gpus
	}
}

// count calculates the accelerators of each node for all variants together: the free ones and those
// of their own replicas. Terminating pods are included, since a replica that waits for their GPU
// slot should not be removed meanwhile. The sum is at most the capacity of the node, but not less
// than its running replicas have.
func (k *typeSupply) count() {
	for i := range k.pool.Nodes {
		k.pool.Nodes[i].Free = max(min(k.free[i]+k.own[i], k.allocatable[i]), k.live[i])
	}
}

// of returns the accelerator type of a variant's replicas; false if it is unknown or has no limit.
func (s *supply) of(v *variant) (*typeSupply, bool) {
	k, found := s.byName[v.Accelerator]
	gpus, _ := v.shape()
	return k, found && gpus > 0
}

// mostPlaceable returns the most replicas of a variant that fit beside the current replicas of the
// others.
func (s *supply) mostPlaceable(v *variant) int {
	k, limited := s.of(v)
	if !limited {
		return unlimited
	}
	gpus, shares := v.shape()
	if k.pool.Elastic {
		return max(v.now, v.scheduled) + max(0, k.pool.Limit-k.requested)/(gpus*shares)
	}
	return v.scheduled + k.slotsFor(gpus)/shares
}

// slotsFor returns how many shares of a size fit beside live replicas.
func (k *typeSupply) slotsFor(gpus int) int {
	if slots, known := k.slots[gpus]; known {
		return slots
	}
	slots := 0
	for i, node := range k.pool.Nodes {
		slots += (node.Free - k.live[i]) / gpus
	}
	k.slots[gpus] = slots
	return slots
}

// total returns how many accelerators of the type the variants may use together.
func (k *typeSupply) total() (total int) {
	if k.pool.Elastic {
		return k.pool.Limit
	}
	for _, node := range k.pool.Nodes {
		total += node.Free
	}
	return total
}

func (s *supply) pools() []solver.Pool {
	pools := make([]solver.Pool, len(s.types))
	for i, k := range s.types {
		pools[i] = k.pool
	}
	return pools
}

// shape returns the accelerators of one share of a replica, and its number of shares, one for each
// pod of a group. It returns 0 accelerators if the accelerator type or their number is unknown.
func (v *variant) shape() (gpus, shares int) {
	if v.Accelerator == "" || v.GPUsPerReplica <= 0 {
		return 0, 1
	}
	total := min(v.GPUsPerReplica, mostGPUs)
	shares = max(1, min(v.workload.GroupSize, total))
	return (total + shares - 1) / shares, shares
}

// takes returns the number of accelerators of one replica.
func (v *variant) takes() int {
	gpus, shares := v.shape()
	return gpus * shares
}

// mostGPUs limits the accelerators of a replica, so that sums do not overflow.
const mostGPUs = 1 << 16

// isPlaceable reports whether a replica exists or would fit beside those of the others.
func (v *variant) isPlaceable() bool { return v.mostPlaceable > 0 }

// allocated returns how many of the current replicas have accelerators; all if accelerators are not
// limited.
func (v *variant) allocated() int {
	if v.mostPlaceable == unlimited {
		return v.now
	}
	return min(v.now, v.scheduled)
}

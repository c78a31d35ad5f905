package planner

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// supply is the kinds of accelerators of which there is a limit, as the variants of an index may have them. The zero value
// limits nothing.
type supply struct {
	types    []*typeSupply // by name
	byName   map[fleet.Accelerator]*typeSupply
	holdings []solver.Holding
}

// typeSupply is the accelerators of one kind.
type typeSupply struct {
	pool     solver.Pool
	at       map[string]int // the node of a name
	allocatable    []int          // by node: what it has for anybody
	free     []int          // what nobody holds of it; below zero where more is held than there is
	own      []int          // what replicas of the variants hold
	live     []int          // the part of it that is not about to go
	requested    int            // what the replicas take that are asked for
	slots    map[int]int    // by a share's accelerators: how many shares fit beside what is live
	used     int            // what the plan takes
	shortFor []*sizing      // models that are short of it; nil until that is asked
	keeper   *variant       // whose minimum takes all; nil where none does
}

// unlimited is more replicas than any range allows.
const unlimited = math.MaxInt32

// countSupply counts the accelerators that the variants may have, and what each could have of them.
func (x *index) countSupply() {
	x.supply = newSupply(x.pools, x.owners(), func(*variant, *fleet.Pod) bool { return true })
	for v := range x.owners() {
		v.mostPlaceable = x.supply.mostPlaceable(v)
	}
}

// newSupply counts what the variants may have: what nobody else holds. Of what their own replicas hold, those that count are told
// apart; others hold what the rest does.
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

// within bounds a number of accelerators, so that sums do not overflow.
func within(n int) int { return max(0, min(n, math.MaxInt32)) }

// add adds a node and returns where it is.
func (k *typeSupply) add(name string, there, taken int) int {
	i := len(k.pool.Nodes)
	k.at[name] = i
	k.pool.Nodes = append(k.pool.Nodes, solver.Node{Name: name})
	k.allocatable, k.free = append(k.allocatable, there), append(k.free, there-taken)
	k.own, k.live = append(k.own, 0), append(k.live, 0)
	return i
}

// enter notes what the replicas of a variant hold.
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

// nodesOf returns the nodes that a replica stands on. One that is ready stands somewhere, whether that can be seen or not.
func (v *variant) nodesOf(pod *fleet.Pod, shares int) []string {
	if len(pod.Nodes) > 0 || !pod.Ready || pod.Terminating {
		return pod.Nodes
	}
	unseen := make([]string, shares)
	for i := range unseen {
		unseen[i] = v.ID.String() + "/" + pod.Name // no node's name holds a slash
	}
	return unseen
}

// allocations returns the nodes of the replicas that stand and are not about to go, by name.
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

// allocate notes that a replica holds accelerators of a node. One that the pool does not have (a node that is gone from it, or has
// another label than what the variant says) has what is held there and no more: what runs is not taken away for it.
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

// count works out what the variants may have of each node together: what is free and what they hold, those that are about to go
// included, since a replica that waits for their place is not to be taken back meanwhile. That is no more than the node has, but
// what runs stays allowed.
func (k *typeSupply) count() {
	for i := range k.pool.Nodes {
		k.pool.Nodes[i].Free = max(min(k.free[i]+k.own[i], k.allocatable[i]), k.live[i])
	}
}

// of returns the kind of accelerators that a variant's replicas take; false where it is not known or without a limit.
func (s *supply) of(v *variant) (*typeSupply, bool) {
	k, found := s.byName[v.Accelerator]
	gpus, _ := v.shape()
	return k, found && gpus > 0
}

// mostPlaceable returns the most replicas that a variant could have beside what the others hold now.
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

// slotsFor returns how many shares of a size fit beside what is live.
func (k *typeSupply) slotsFor(gpus int) int {
	if seats, known := k.slots[gpus]; known {
		return seats
	}
	seats := 0
	for i, node := range k.pool.Nodes {
		seats += (node.Free - k.live[i]) / gpus
	}
	k.slots[gpus] = seats
	return seats
}

// total returns how many accelerators of the kind the variants may have together.
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

// shape returns what one replica takes: accelerators for each share, and its shares, of which a group has one for each pod. Nothing
// where it is not known of which kind.
func (v *variant) shape() (gpus, shares int) {
	if v.Accelerator == "" || v.GPUsPerReplica <= 0 {
		return 0, 1
	}
	total := min(v.GPUsPerReplica, mostGPUs)
	shares = max(1, min(v.workload.GroupSize, total))
	return (total + shares - 1) / shares, shares
}

// takes returns how many accelerators one replica takes.
func (v *variant) takes() int {
	gpus, shares := v.shape()
	return gpus * shares
}

// mostGPUs bounds the accelerators of a replica, so that sums do not overflow.
const mostGPUs = 1 << 16

// isPlaceable reports whether one replica stands, or could beside what the others hold.
func (v *variant) isPlaceable() bool { return v.mostPlaceable > 0 }

// allocated returns how many of the replicas that are asked for have their accelerators, where these are limited.
func (v *variant) allocated() int {
	if v.mostPlaceable == unlimited {
		return v.now
	}
	return min(v.now, v.scheduled)
}

package planner

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// freeGPUs is the accelerator types with a limit, as far as the variants of a view may use them, by
// name. Accelerators of replicas that do not start or are stuck are allocated all the same, and
// count as those of others.
type freeGPUs []*gpuType

// gpuUse is the accelerators that a variant uses: their type, and the placement of its pods.
type gpuUse struct {
	accelerator fleet.Accelerator
	placement   int
}

// gpuType is the accelerators of one type, or of those of its nodes that take pods of the same
// variants.
type gpuType struct {
	accelerator fleet.Accelerator
	pool        solver.Pool    // of which the name is that of the part
	at          map[string]int // index of a node by its name
	nodes       []gpuNode
	// accelerators of existing or scheduled replicas, whichever are more
	requested int
	slots     map[shareUse]int // how many shares fit beside live ones
	adds      bool             // the limit is that of a node autoscaler
	// pods that wait for its nodes stay
	keepsPending bool
	limitedBy    string       // the objects that limit it
	rejected     map[int]bool // placements of which some node takes none
	// by placement: why nodes that are not in the part take none, and how many do not
	elsewhere map[int]map[string]int
}

// gpuNode is the accelerators of one node.
type gpuNode struct {
	allocatable int
	free        int            // not allocated; negative if more are allocated than allocatable
	own         int            // allocated by replicas of the variants
	live        int            // the part of own that is not terminating
	usable      int            // by replicas of the variants; unlimited if nothing else limits them
	usableBy    string         // the cause of that limit
	closed      string         // why it takes no more pods
	rejects     map[int]string // why it takes none of a placement
}

// shareUse is the accelerators of a share, and its placement.
type shareUse struct{ gpus, placement int }

// unlimited is more replicas than any range allows.
const unlimited = math.MaxInt32

// newGPUs counts the accelerators that the variants may use: those that others have not allocated.
// It sets for each variant the most replicas that fit, and how many of its pending pods do.
func newGPUs(pools []fleet.Pool, variants iter.Seq[*variant], now time.Time) freeGPUs {
	var types freeGPUs
	byUse := make(map[gpuUse]*gpuType)
	placements := placementsOf(variants)
	for _, pool := range oneRowPerAccelerator(pools) {
		if pool.Accelerator == "" || pool.Elastic && mostOf(pool) == unlimited {
			continue
		}
		for _, part := range partsOf(pool, placements[pool.Accelerator]) {
			k := newGPUType(part)
			types = append(types, k)
			for _, placement := range part.placements {
				byUse[gpuUse{pool.Accelerator, placement}] = k
			}
		}
	}
	for v := range variants {
		if gpus, _ := v.shape(); gpus > 0 {
			v.gpuType = cmp.Or(byUse[gpuUse{v.accelerator, v.workload.Placement}], byUse[gpuUse{v.accelerator, 0}])
		}
		if v.gpuType != nil {
			v.gpuType.enter(v, now)
		}
	}
	for _, k := range types {
		for i, node := range k.nodes {
			k.pool.Nodes[i].Free = max(min(node.free+node.own, node.allocatable, node.usable), node.live)
		}
	}
	slots := newSlots(types)
	for v := range variants {
		slots.keep(v, v.allocated())
	}
	for v := range variants {
		v.mostPlaceable = v.gpuType.mostPlaceable(v)
		v.fits = slots.take(v, v.pending)
	}
	return types
}

func newGPUType(pool poolPart) *gpuType {
	k := &gpuType{
		accelerator: pool.Accelerator,
		pool:        solver.Pool{Accelerator: pool.name, Elastic: pool.Elastic, Limit: pool.Limit},
		at:          make(map[string]int, len(pool.Nodes)),
		slots:       make(map[shareUse]int),
		rejected:    make(map[int]bool),
		limitedBy:   pool.LimitedBy,
		elsewhere:   pool.elsewhere,
	}
	if pool.Elastic {
		if pool.Limit <= 0 {
			k.adds, k.keepsPending, k.pool.Limit = true, pool.BacksOff, max(0, min(pool.Adds, unlimited))
			for _, node := range pool.Nodes {
				k.pool.Limit = min(unlimited, k.pool.Limit+max(0, bounded(node.Allocatable)-bounded(node.Allocated)))
			}
		}
		return k
	}
	k.nodes, k.pool.Nodes = make([]gpuNode, 0, len(pool.Nodes)), make([]solver.Node, 0, len(pool.Nodes))
	for _, node := range pool.Nodes {
		i := k.add(node.Name, bounded(node.Allocatable), bounded(node.Allocated))
		k.nodes[i].closed, k.nodes[i].usableBy = node.Closed, node.UsableBy
		if node.Usable > 0 {
			k.nodes[i].usable = node.Usable
		}
		for _, rejection := range node.Rejects {
			k.reject(i, rejection)
		}
	}
	return k
}

// bounded limits the number of accelerators of a node, each of which may take a step.
func bounded(n int) int { return max(0, min(n, mostGPUs)) }

// add adds a node and returns its index.
func (k *gpuType) add(name string, allocatable, allocated int) int {
	i := len(k.nodes)
	k.at[name] = i
	k.nodes = append(k.nodes, gpuNode{allocatable: allocatable, free: allocatable - allocated, usable: unlimited})
	k.pool.Nodes = append(k.pool.Nodes, solver.Node{})
	return i
}

// enter records the accelerators of a variant's replicas. Those of pods that are not capacity are
// taken from an elastic limit, and stay allocated to others on nodes.
func (k *gpuType) enter(v *variant, now time.Time) {
	gpus, shares := v.shape()
	if k.pool.Elastic {
		// of replicas that the spec merely states, only pods count
		k.requested += min(unlimited, v.allocated()+v.pending) * gpus * shares
		if k.adds { // which are not free on the nodes
			k.pool.Limit = min(unlimited, k.pool.Limit+v.onNodes()*gpus)
		}
		if k.keepsPending {
			k.pool.Limit = min(unlimited, k.pool.Limit+v.pending*gpus*shares)
		}
		k.pool.Limit -= min(k.pool.Limit, v.lostOnNodes(now)*gpus*shares)
		return
	}
	pods := v.workload.Pods
	for i := range pods[min(1, len(pods)):] {
		if byOrdinal(&pods[i], &pods[i+1]) > 0 {
			pods = slices.Clone(pods)
			slices.SortFunc(pods, func(a, b fleet.Pod) int { return byOrdinal(&a, &b) })
			break
		}
	}
	v.placements = make([][]int32, 0, len(pods))
	on := make([]int32, 0, len(pods)*shares)
	for i := range pods {
		pod := &pods[i]
		if v.isOverdue(pod, now) || v.isUseless(pod.Name) {
			k.leaveTo(pod, gpus)
			continue
		}
		first := len(on)
		for _, name := range v.nodesOf(pod, shares) {
			if at := k.allocate(name, gpus, pod.Terminating); !pod.Terminating {
				on = append(on, int32(at))
			}
		}
		if len(on) > first {
			v.placements = append(v.placements, on[first:len(on):len(on)])
		}
	}
}

// leaveTo leaves a pod that is no capacity the processors and the memory of its accelerators.
func (k *gpuType) leaveTo(pod *fleet.Pod, gpus int) {
	for _, name := range pod.Nodes {
		if i, found := k.at[name]; found && k.nodes[i].usable < unlimited {
			k.nodes[i].usable = max(0, k.nodes[i].usable-gpus)
		}
	}
}

// onNodes returns how many shares of the variant's replicas have a node.
func (v *variant) onNodes() (shares int) {
	_, of := v.shape()
	for i := range v.workload.Pods {
		shares += len(v.nodesOf(&v.workload.Pods[i], of))
	}
	return shares
}

// lostOnNodes returns how many pods have accelerators and are not capacity: stuck ones, and overdue
// ones on a node. A Pending pod has none.
func (v *variant) lostOnNodes(now time.Time) (lost int) {
	for i := range v.workload.Pods {
		if pod := &v.workload.Pods[i]; v.isOverdue(pod, now) && len(pod.Nodes) > 0 {
			lost++
		}
	}
	return lost + v.useless()
}

// byOrdinal orders pods by name, and those of one StatefulSet by their number.
func byOrdinal(a, b *fleet.Pod) int {
	return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
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

// allocate records that a replica has accelerators of a node, and returns its index; none if the
// pool has no such node and the replica leaves. Else one that the pool does not have (it was
// removed, or has a label other than the variant says) is added with these accelerators and no
// more: a running replica is not removed for that.
func (k *gpuType) allocate(name string, gpus int, leaves bool) int {
	i, found := k.at[name]
	switch {
	case !found && leaves:
		return none
	case !found:
		i = k.add(name, 0, 0)
	}
	k.nodes[i].own += gpus
	if !leaves {
		k.nodes[i].live += gpus
	}
	return i
}

// asOption returns a variant as an option of the solver, with the accelerators of its replicas.
// Those that have no limit are named nothing: a tenant may name a type like a part of another.
func (v *variant) asOption() solver.Option {
	gpus, shares := v.shape()
	o := solver.Option{Variant: v.ID, GPUs: gpus, Nodes: shares}
	if k := v.gpuType; k != nil {
		o.Accelerator, o.Placement, o.Held = k.pool.Accelerator, v.workload.Placement, v.placements
	}
	return o
}

// mostPlaceable returns the most replicas of a variant that fit beside the existing replicas of the
// others.
func (k *gpuType) mostPlaceable(v *variant) int {
	if k == nil {
		return unlimited
	}
	gpus, shares := v.shape()
	if k.pool.Elastic {
		return v.allocated() + v.pending + max(0, k.pool.Limit-k.requested)/(gpus*shares)
	}
	return v.scheduled + k.slotsFor(shareUse{gpus, v.workload.Placement})/shares
}

// slotsFor returns how many such shares fit beside live replicas.
func (k *gpuType) slotsFor(share shareUse) int {
	if slots, known := k.slots[share]; known {
		return slots
	}
	slots := 0
	for i, node := range k.nodes {
		if node.rejects[share.placement] == "" {
			slots += max(0, k.pool.Nodes[i].Free-node.live) / share.gpus
		}
	}
	k.slots[share] = slots
	return slots
}

// total returns how many accelerators of the type the variants may use together.
func (k *gpuType) total() (total int) {
	if k.pool.Elastic {
		return k.pool.Limit
	}
	for _, node := range k.pool.Nodes {
		total += node.Free
	}
	return total
}

func (g freeGPUs) pools() []solver.Pool {
	pools := make([]solver.Pool, len(g))
	for i, k := range g {
		pools[i] = k.pool
		if k.pool.Elastic && k.pool.Limit <= 0 { // zero is no limit to the solver
			pools[i] = solver.Pool{Accelerator: k.pool.Accelerator}
		}
	}
	return pools
}

// isPlaceable reports whether a replica exists or would fit beside those of the others, and within
// the quota.
func (v *variant) isPlaceable() bool { return v.mostPlaceable > 0 && v.mostInQuota() > 0 }

// limited reports whether the variant's accelerators are.
func (v *variant) limited() bool { return v.gpuType != nil }

// allocated returns how many replicas have accelerators.
func (v *variant) allocated() int { return min(v.alive(), v.scheduled) }

// factual returns how many of a number of replicas exist, or will in a moment: they have
// accelerators, or are pending and some are free. A number that an object merely states takes
// nothing from others.
func (v *variant) factual(n int) int { return min(n, v.scheduled+v.fits) }

// existingCapacity returns how many replicas are capacity, or will be: on limited accelerators
// those that exist and those that replace terminating pods, and not the number that the spec merely
// states.
func (v *variant) existingCapacity() int {
	if !v.limited() {
		return v.alive()
	}
	replaced := min(max(0, v.now-v.live), len(v.workload.Pods)-v.live)
	return min(v.alive(), v.mostPlaceable, v.scheduled+v.fits+replaced)
}

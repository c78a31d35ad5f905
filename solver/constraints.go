package solver

import (
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver/packing"
)

// maxGPUs bounds the accelerators of a replica on one node, its number of nodes, and the
// accelerators of a node.
const maxGPUs = 1 << 16

// limit is one capacity constraint: Σ amount·replicas <= capacity over the rows of its classes.
type limit struct {
	kind     Limit
	capacity int64
	// pool, size and rejects are those of a limit of blocks on nodes.
	pool    int32
	size    int
	rejects []bool
	// taken is the amount that the plan uses, and least the amount that all rows use at their
	// minimum.
	taken, least int64
}

// use is the amount of a limit that one replica of a class needs.
type use struct {
	limit  int32
	amount int64
}

// class is the resource request of a replica. All rows of a class request the same.
type class struct {
	packing.Shape
	pool      int32 // index of its pool; none if the accelerator type is unlimited
	placement int   // zero if no node of the pool rejects it
	namespace string
	kind      fleet.Accelerator // set, as the namespace is, if the namespace has a quota
	uses      []use
	full      bool // another new replica was found not to fit beside the minimums
}

// nodePool is the nodes of one accelerator type, and the rows whose replicas run there.
type nodePool struct {
	accelerator fleet.Accelerator
	fixed       bool  // no node autoscaler adds nodes
	limit       int64 // of an elastic pool; none if it has no limit
	nodes       []Node
	rows        []int32
	classes     []int32 // of its rows
	// exact is true if the limits are exact: no existing replica is pinned to a node, and sizes
	// divide each other.
	exact bool
	// held is, for each row, the nodes of each existing replica; nil if there is none
	held [][][]int32
	// raised is, for each node, the larger of its free accelerators and those allocated to existing
	// replicas; nil if none are allocated.
	raised []int
	// rejects is, by placement, the nodes that reject it
	rejects map[int][]bool
	placer  *packing.Placer // nil if the limits are exact
	// clears is true if the nodes are competitors: see addNodes. hold is, for each row, the class
	// of its existing replicas; none if none may be removed. odd is the sizes outside the longest
	// chain of sizes that divide each other: nodes have places for them.
	clears bool
	hold   []int32
	odd    []int
	counts []int64 // scratch: for each row the replicas to be placed
}

// constrain assigns the rows to classes, and makes the limits.
func (c *canonicalProblem) constrain(p *Problem) {
	if len(p.Pools) == 0 && len(p.Quotas) == 0 {
		return
	}
	c.pools = usablePools(p.Pools)
	quotas := usableQuotas(p.Quotas)
	c.classify(quotas)
	for at := range c.pools {
		p := &c.pools[at]
		if p.fixed && len(p.rows) > 0 {
			c.stand(p)
		}
		c.limitPool(int32(at))
		if p.fixed && len(p.rows) > 0 && !p.exact {
			c.seat(p)
		}
	}
	for _, q := range quotas {
		c.addLimit(LimitQuota, int64(q.GPUs), func(k *class) int64 {
			if k.namespace != q.Namespace || q.Accelerator != "" && q.Accelerator != k.kind {
				return 0
			}
			return k.all()
		})
	}
}

// classify finds the classes of the rows.
func (c *canonicalProblem) classify(quotas []Quota) {
	governed := map[string]bool{}
	for _, q := range quotas {
		governed[q.Namespace] = true
	}
	pools := make(map[fleet.Accelerator]int32, len(c.pools))
	for i := range c.pools {
		p := &c.pools[i]
		if p.fixed || p.limit != none {
			pools[p.accelerator] = int32(i)
		}
		if p.fixed {
			p.rejects = rejections(p.nodes)
		}
	}
	for i := range c.rows {
		r := &c.rows[i]
		o := &c.options[r.option]
		k := class{pool: none, Shape: shapeOf(o)}
		if k.GPUs == 0 {
			continue
		}
		if at, found := pools[o.Accelerator]; found {
			k.pool = at
			if c.pools[at].rejects[o.Placement] != nil {
				k.placement = o.Placement
			}
		}
		if len(governed) > 0 && governed[o.Variant.Namespace] {
			k.namespace, k.kind = o.Variant.Namespace, o.Accelerator
		}
		if k.pool == none && k.namespace == "" {
			continue
		}
		r.class = c.classLike(&k)
		if k.pool != none && c.pools[k.pool].fixed {
			p := &c.pools[k.pool]
			r.seat = int32(len(p.rows))
			p.rows = append(p.rows, int32(i))
		}
	}
}

// classLike returns the class that equals k, and adds it if there is none.
func (c *canonicalProblem) classLike(k *class) int32 {
	own := &c.unpooled
	if k.pool != none {
		own = &c.pools[k.pool].classes
	}
	for _, i := range *own {
		if x := &c.classes[i]; x.placement == k.placement && x.Shape == k.Shape && x.namespace == k.namespace && x.kind == k.kind {
			return i
		}
	}
	at := int32(len(c.classes))
	c.classes, *own = append(c.classes, *k), append(*own, at)
	return at
}

// limitPool makes the limits of a pool. A fixed pool has one limit for each size s of a share: a
// node with f free accelerators has ⌊f/s⌋ blocks of s, and a share of g accelerators needs ⌊g/s⌋ of
// them. These limits are exact if the sizes divide each other.
func (c *canonicalProblem) limitPool(at int32) {
	p := &c.pools[at]
	var sizes []int
	for i := range c.classes {
		if k := &c.classes[i]; k.pool == at {
			sizes = append(sizes, k.GPUs)
		}
	}
	if len(sizes) == 0 {
		return
	}
	if !p.fixed {
		c.addLimit(LimitPool, p.limit, func(k *class) int64 {
			if k.pool != at {
				return 0
			}
			return k.all()
		})
		return
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if !divide(sizes) {
		p.exact = false
		if sizes[0] != 1 {
			sizes = slices.Insert(sizes, 0, 1)
		}
		p.odd = packing.Odd(sizes)
	}
	rejected := c.rejectedTogether(at)
	p.clears = !p.exact && len(sizes)*(1+len(rejected)) <= mostPaired && p.choicesAreFew()
	if p.clears && p.held == nil {
		p.held = make([][][]int32, len(p.rows))
	}
	blocks := p.blocks(sizes, nil)
	for i, size := range sizes {
		c.addLimit(LimitNodes, blocks[i], func(k *class) int64 {
			if k.pool != at {
				return 0
			}
			return k.blocks(size)
		})
		c.limits[len(c.limits)-1].blocksOf(at, size, nil)
	}
	c.limitPlacements(at, sizes, rejected)
}

func (l *limit) blocksOf(pool int32, size int, rejects []bool) {
	l.pool, l.size, l.rejects = pool, size, rejects
}

// blocks is the number of blocks of a size that one replica needs.
func (k *class) blocks(size int) int64 { return int64(k.Shares) * int64(k.GPUs/size) }

// blocks is the number of blocks of each size on all nodes but the rejected ones.
func (p *nodePool) blocks(sizes []int, rejected []bool) []int64 {
	var few [64]int64 // the nodes with so many free accelerators
	blocks := make([]int64, len(sizes))
	count := func(free int, nodes int64) {
		for j, size := range sizes {
			blocks[j] += nodes * int64(free/size)
		}
	}
	for i := range p.nodes {
		if rejected != nil && rejected[i] {
			continue
		}
		free := p.nodes[i].Free
		if p.raised != nil {
			free = p.raised[i]
		}
		if free < len(few) {
			few[free]++
		} else {
			count(free, 1)
		}
	}
	for free, nodes := range few {
		count(free, nodes)
	}
	return blocks
}

// divide reports whether each size divides the next one.
func divide(sizes []int) bool {
	for i := 1; i < len(sizes); i++ {
		if sizes[i]%sizes[i-1] != 0 {
			return false
		}
	}
	return true
}

// addLimit adds a limit and the amount of it that each class uses.
func (c *canonicalProblem) addLimit(kind Limit, capacity int64, amount func(k *class) int64) {
	at := int32(len(c.limits))
	c.limits = append(c.limits, limit{kind: kind, capacity: capacity})
	for i := range c.classes {
		if n := amount(&c.classes[i]); n > 0 {
			c.classes[i].uses = append(c.classes[i].uses, use{at, n})
		}
	}
}

func shapeOf(o *Option) packing.Shape {
	gpus := max(0, min(o.GPUs, maxGPUs))
	return packing.Shape{GPUs: gpus, Shares: max(1, min(o.Nodes, maxGPUs))}
}

// all is the number of accelerators that one replica uses on all its nodes.
func (k *class) all() int64 { return int64(k.GPUs) * int64(k.Shares) }

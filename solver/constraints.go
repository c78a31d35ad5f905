package solver

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// maxGPUs bounds what one replica takes of a node, over how many nodes it spreads, and what a node has.
const maxGPUs = 1 << 16

// limit says that replicas may not take more than there is: Σ amount·replicas <= capacity over the rows of its classes.
type limit struct {
	kind     Limit
	capacity int64
	// taken is what the plan takes, and least what rows take that are at their least.
	taken, least int64
}

// use is what a replica of a class takes of a limit.
type use struct {
	limit  int32
	amount int64
}

// class is what a replica takes: rows of one class take the same.
type class struct {
	shape
	pool      int32 // that it takes of; none where that is unlimited
	namespace string
	kind      fleet.Accelerator // with the namespace, where that has a quota
	uses      []use
}

// nodePool is the nodes of one kind, sorted by name, and the rows that stand on them.
type nodePool struct {
	accelerator fleet.Accelerator
	fixed       bool  // its nodes are all there are
	limit       int64 // of an elastic one; none where there is none
	nodes       []Node
	rows        []int32
	exact       bool        // the limits say all: nothing is held, and sizes divide each other
	held        [][][]int32 // of each of its rows, where the replicas stand; nil where nothing is held
	raised      []int       // what each node has, or what is held there if that is more; nil where nothing is held
	placer      *placer     // nil where the limits say all
	counts      []int64     // of each of its rows, to ask the placer
}

// constrain gives rows their classes, and makes the limits.
func (c *canonicalProblem) constrain(p *Problem) {
	if len(p.Pools) == 0 && len(p.Quotas) == 0 {
		return
	}
	c.pools = usablePools(p.Pools)
	quotas := usableQuotas(p.Quotas)
	c.classify(quotas)
	c.stand(p.Holdings)
	for at := range c.pools {
		p := &c.pools[at]
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
		if p := &c.pools[i]; p.fixed || p.limit != none {
			pools[p.accelerator] = int32(i)
		}
	}
	for i := range c.rows {
		r := &c.rows[i]
		o := &c.options[r.option]
		k := class{pool: none, shape: shapeOf(o)}
		if k.gpus == 0 {
			continue
		}
		if at, found := pools[o.Accelerator]; found {
			k.pool = at
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

// classLike returns the class that is like k, made where there is none.
func (c *canonicalProblem) classLike(k *class) int32 {
	for i := range c.classes {
		if x := &c.classes[i]; x.pool == k.pool && x.shape == k.shape && x.namespace == k.namespace && x.kind == k.kind {
			return int32(i)
		}
	}
	c.classes = append(c.classes, *k)
	return int32(len(c.classes) - 1)
}

// limitPool makes the limits of a pool. Of fixed nodes there is one for each size of a share: a node with f accelerators free
// holds ⌊f/s⌋ blocks of s of them, and a share of g takes ⌊g/s⌋. Where sizes divide each other these are exact.
func (c *canonicalProblem) limitPool(at int32) {
	p := &c.pools[at]
	var sizes []int
	for i := range c.classes {
		if k := &c.classes[i]; k.pool == at {
			sizes = append(sizes, k.gpus)
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
	}
	for _, size := range sizes {
		c.addLimit(LimitNodes, p.blocks(size), func(k *class) int64 {
			if k.pool != at {
				return 0
			}
			return int64(k.shares) * int64(k.gpus/size)
		})
	}
}

// blocks is how many blocks of a size the nodes hold.
func (p *nodePool) blocks(size int) (blocks int64) {
	for i := range p.nodes {
		free := p.nodes[i].Free
		if p.raised != nil {
			free = p.raised[i]
		}
		blocks += int64(free / size)
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

// addLimit adds a limit and what the classes take of it.
func (c *canonicalProblem) addLimit(kind Limit, capacity int64, amount func(k *class) int64) {
	at := int32(len(c.limits))
	c.limits = append(c.limits, limit{kind: kind, capacity: capacity})
	for i := range c.classes {
		if n := amount(&c.classes[i]); n > 0 {
			c.classes[i].uses = append(c.classes[i].uses, use{at, n})
		}
	}
}

func shapeOf(o *Option) shape {
	gpus := max(0, min(o.GPUs, maxGPUs))
	return shape{gpus: gpus, shares: max(1, min(o.Nodes, maxGPUs))}
}

// all is how many accelerators a replica takes.
func (s shape) all() int64 { return int64(s.gpus) * int64(s.shares) }

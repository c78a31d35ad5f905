package solver

import (
	"cmp"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// maxGPUs bounds what one replica takes of a node, over how many nodes it spreads, and what a node has.
const maxGPUs = 1 << 16

// limit says that replicas may not take more than there is: Σ amount·replicas <= capacity over the rows of its classes.
type limit struct {
	kind     Limit
	capacity int64
	// taken is what the plan takes.
	taken int64
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
	placer      *placer
	counts      []int64 // of each of its rows, to ask the placer
	exact       bool    // the limits say all: nothing is held, and sizes divide each other
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
		c.limitPool(int32(at))
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
		blocks := int64(0)
		for _, node := range p.nodes {
			blocks += int64(node.Free / size)
		}
		c.addLimit(LimitNodes, blocks, func(k *class) int64 {
			if k.pool != at {
				return 0
			}
			return int64(k.shares) * int64(k.gpus/size)
		})
	}
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

// stand notes where replicas stand. A node on which more is held than it has counts as one that has that much: the placer knows
// better.
func (c *canonicalProblem) stand(holdings []Holding) {
	byVariant := make(map[fleet.VariantID][][]string)
	for _, h := range holdings {
		byVariant[h.Variant] = append(byVariant[h.Variant], h.Nodes)
	}
	for at := range c.pools {
		p := &c.pools[at]
		if !p.fixed || len(p.rows) == 0 {
			continue
		}
		index := make(map[string]int32, len(p.nodes))
		free := make([]int32, len(p.nodes))
		for i, node := range p.nodes {
			index[node.Name], free[i] = int32(i), int32(node.Free)
		}
		p.exact, p.counts = true, make([]int64, len(p.rows))
		taken := make([]int, len(p.nodes))
		options := make([]placedOption, len(p.rows))
		for i, at := range p.rows {
			r := &c.rows[at]
			options[i].shape = c.classes[r.class].shape
			for _, names := range byVariant[c.options[r.option].Variant] {
				nodes, known := places(names, index)
				if !known || len(nodes) != options[i].shares {
					continue
				}
				options[i].held = append(options[i].held, nodes)
				for _, node := range nodes {
					taken[node] += options[i].gpus
				}
			}
			slices.SortFunc(options[i].held, slices.Compare[[]int32])
			r.held = len(options[i].held)
			p.exact = p.exact && r.held == 0
		}
		for i := range p.nodes {
			p.nodes[i].Free = max(p.nodes[i].Free, taken[i])
		}
		p.placer = newPlacer(free, options)
	}
}

func places(names []string, index map[string]int32) (nodes []int32, known bool) {
	for _, name := range names {
		at, found := index[name]
		if !found {
			return nil, false
		}
		nodes = append(nodes, at)
	}
	slices.Sort(nodes)
	return nodes, true
}

func shapeOf(o *Option) shape {
	gpus := max(0, min(o.GPUs, maxGPUs))
	return shape{gpus: gpus, shares: max(1, min(o.Nodes, maxGPUs))}
}

// all is how many accelerators a replica takes.
func (s shape) all() int64 { return int64(s.gpus) * int64(s.shares) }

// usablePools returns the pools that limit something, each kind once: nodes of all its rows, each name once with the least that
// it has.
func usablePools(rows []Pool) []nodePool {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Pool) int { return cmp.Compare(a.Accelerator, b.Accelerator) })
	var pools []nodePool
	for _, row := range sorted {
		if len(pools) == 0 || pools[len(pools)-1].accelerator != row.Accelerator {
			pools = append(pools, nodePool{accelerator: row.Accelerator, limit: none})
		}
		p := &pools[len(pools)-1]
		p.fixed = p.fixed || !row.Elastic
		if row.Elastic && row.Limit > 0 && (p.limit == none || int64(row.Limit) < p.limit) {
			p.limit = int64(row.Limit)
		}
		p.nodes = append(p.nodes, row.Nodes...)
	}
	for i := range pools {
		nodes := pools[i].nodes
		for j := range nodes {
			nodes[j].Free = max(0, min(nodes[j].Free, maxGPUs))
		}
		slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Free, b.Free)) })
		pools[i].nodes = slices.CompactFunc(nodes, func(a, b Node) bool { return a.Name == b.Name })
	}
	return pools
}

func usableQuotas(rows []Quota) []Quota {
	quotas := slices.Clone(rows)
	for i := range quotas {
		quotas[i].GPUs = max(0, quotas[i].GPUs)
	}
	slices.SortFunc(quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.GPUs, b.GPUs))
	})
	return slices.CompactFunc(quotas, func(a, b Quota) bool { return a.Namespace == b.Namespace && a.Accelerator == b.Accelerator })
}

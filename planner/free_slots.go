package planner

// slots are the free accelerators on nodes beside replicas that stay. Replicas are placed one after
// the other: each placement is possible, but another order might place more.
type slots map[*gpuType]*freeSlots

// freeSlots is the free accelerators of one type.
type freeSlots struct {
	total int     // of an elastic pool
	left  []int   // by node
	nodes [][]int // nodes by free accelerators; a node may also be in lists that no longer apply
}

// newSlots returns the free accelerators of nodes beside all live replicas, and the whole limit of
// elastic pools.
func newSlots(types freeGPUs) slots {
	all := make(slots, len(types))
	for _, k := range types {
		own := &freeSlots{total: k.pool.Limit, left: make([]int, len(k.pool.Nodes))}
		for i, node := range k.pool.Nodes {
			own.left[i] = max(0, node.Free-k.nodes[i].live)
			own.list(i)
		}
		all[k] = own
	}
	return all
}

// list records the free accelerators of a node.
func (s *freeSlots) list(node int) {
	n := min(s.left[node], mostGPUs)
	for len(s.nodes) <= n {
		s.nodes = append(s.nodes, nil)
	}
	s.nodes[n] = append(s.nodes[n], node)
}

// keep accounts for the replicas of a variant that stay: it frees the nodes of the others, and
// subtracts those that stay from the limit of an elastic pool. Kubernetes decides which replicas
// go; the last by name or ordinal are assumed.
func (s slots) keep(v *variant, replicas int) {
	k := v.gpuType
	if k == nil {
		return
	}
	gpus, shares := v.shape()
	own := s[k]
	if k.pool.Elastic {
		own.total -= replicas * gpus * shares
		return
	}
	if replicas >= v.scheduled {
		return
	}
	for _, nodes := range v.placements[min(max(0, replicas), len(v.placements)):] {
		for _, i := range nodes {
			own.left[i] += gpus
			own.list(int(i))
		}
	}
}

// take places up to so many replicas of a variant, and returns how many fit.
func (s slots) take(v *variant, replicas int) (placed int) {
	k := v.gpuType
	if k == nil {
		return max(0, replicas)
	}
	gpus, shares := v.shape()
	own := s[k]
	if k.pool.Elastic {
		placed = max(0, min(replicas, own.total/(gpus*shares)))
		own.total -= placed * gpus * shares
		return placed
	}
	best := own.best
	if placement := v.workload.Placement; k.rejected[placement] {
		best = func(gpus int) (int, bool) {
			return own.bestOf(gpus, func(node int) bool { return k.nodes[node].rejects[placement] == "" })
		}
	}
	for placed < replicas && own.place(gpus, shares, best) {
		placed++
	}
	return placed
}

// place places one replica on the best nodes; false if it does not fit.
func (s *freeSlots) place(gpus, shares int, best func(gpus int) (int, bool)) bool {
	var chosen []int
	for range shares {
		node, found := best(gpus)
		if !found {
			for _, back := range chosen {
				s.left[back] += gpus
				s.list(back)
			}
			return false
		}
		s.left[node] -= gpus
		s.list(node)
		chosen = append(chosen, node)
	}
	return true
}

// best returns the node with the fewest free accelerators that are enough.
func (s *freeSlots) best(gpus int) (int, bool) {
	for n := gpus; n < len(s.nodes); n++ {
		for len(s.nodes[n]) > 0 {
			last := len(s.nodes[n]) - 1
			if node := s.nodes[n][last]; min(s.left[node], mostGPUs) == n {
				return node, true
			}
			s.nodes[n] = s.nodes[n][:last]
		}
	}
	return 0, false
}

// bestOf returns the node with the fewest free accelerators that are enough, of those that are
// allowed.
func (s *freeSlots) bestOf(gpus int, allowed func(node int) bool) (best int, found bool) {
	for node, left := range s.left {
		if left >= gpus && allowed(node) && (!found || left < s.left[best]) {
			best, found = node, true
		}
	}
	return best, found
}

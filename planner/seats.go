package planner

// slots are the accelerators that are left on nodes beside replicas that stay where they are. Taking them in some order places
// replicas for certain, if not as many as the best order would.
type slots struct {
	supply *supply
	types map[*typeSupply]*freeSlots
}

// freeSlots is what is left of one kind.
type freeSlots struct {
	total int     // of an elastic kind
	left  []int   // by node
	nodes [][]int // nodes by what is left of them; they may stand in a list that they have left since
}

// newSlots returns all seats but those that replicas hold which are not about to go.
func newSlots(s *supply) *slots {
	all := &slots{supply: s, types: make(map[*typeSupply]*freeSlots, len(s.types))}
	for _, k := range s.types {
		own := &freeSlots{total: k.pool.Limit, left: make([]int, len(k.pool.Nodes))}
		for i, node := range k.pool.Nodes {
			own.left[i] = node.Free - k.live[i]
			own.list(i)
		}
		all.types[k] = own
	}
	return all
}

// list notes what is left of a node.
func (s *freeSlots) list(node int) {
	n := min(s.left[node], mostGPUs)
	for len(s.nodes) <= n {
		s.nodes = append(s.nodes, nil)
	}
	s.nodes[n] = append(s.nodes[n], node)
}

// keep gives free what a variant's replicas hold beyond those that stay. Which of them go is not ours to say: the last by name
// stands for any.
func (s *slots) keep(v *variant, replicas int) {
	k, limited := s.supply.of(v)
	if !limited {
		return
	}
	gpus, shares := v.shape()
	own := s.types[k]
	if k.pool.Elastic {
		own.total -= replicas * gpus * shares
		return
	}
	for _, nodes := range v.allocations(shares)[min(replicas, v.scheduled):] {
		for _, name := range nodes {
			if i, found := k.at[name]; found {
				own.left[i] += gpus
				own.list(i)
			}
		}
	}
}

// take takes the accelerators of up to as many replicas of a variant, and returns of how many it could.
func (s *slots) take(v *variant, replicas int) (taken int) {
	k, limited := s.supply.of(v)
	if !limited {
		return max(0, replicas)
	}
	gpus, shares := v.shape()
	own := s.types[k]
	if k.pool.Elastic {
		taken = max(0, min(replicas, own.total/(gpus*shares)))
		own.total -= taken * gpus * shares
		return taken
	}
	for taken < replicas && own.place(gpus, shares) {
		taken++
	}
	return taken
}

// place takes the accelerators of one replica on the nodes of which least is left; false where there is no room for it.
func (s *freeSlots) place(gpus, shares int) bool {
	var chosen []int
	for range shares {
		node, found := s.best(gpus)
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

// best returns the node of which least is left, of those that have room.
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

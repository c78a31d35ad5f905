package solver

import (
	"cmp"
	"slices"
)

// neighbourhoods are the parts of a component that a large neighbourhood search optimises again.
type neighbourhoods struct {
	k     *component
	users [][]int32 // of each limit of existing replicas, the competitors that use it
	own   [][]int32 // of each competitor, these limits
}

func newNeighbourhoods(k *component) *neighbourhoods {
	n := &neighbourhoods{k: k, users: make([][]int32, len(k.slack)), own: make([][]int32, k.size())}
	for i := range n.own {
		for _, class := range k.competitor(i).terms {
			if uses := k.classes[class].uses; int(uses[0].limit) >= len(k.limits) {
				n.users[uses[0].limit] = append(n.users[uses[0].limit], int32(i))
				n.own[i] = append(n.own[i], uses[0].limit)
			}
		}
	}
	return n
}

// fixed returns the columns of a plan, but none for a third of the competitors: those whose columns
// have the highest reduced costs, and those near them. Each round starts with others, and each
// second one is without the column of the first of them.
func (n *neighbourhoods) fixed(d *draft, round int) (columns []int32, without *choice) {
	k := n.k
	columns = make([]int32, k.size())
	regret, order := make([]int64, k.size()), make([]int, k.size())
	for i := range columns {
		m := k.competitor(i)
		if i < len(k.models) {
			columns[i] = int32(m.remember(m.chosen))
		} else {
			columns[i] = d.nodes[i-len(k.models)]
		}
		regret[i], order[i] = m.priced(&m.columns[columns[i]])-m.value, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(regret[b], regret[a]) })
	left := max(12, len(columns)/3)
	if round%2 == 1 {
		from := order[7*round%len(order)]
		without = &choice{from, columns[from]}
	}
	for at := 0; left > 0 && at < len(order); at++ {
		left = n.open(columns, order[(at+7*round)%len(order)], left)
	}
	return columns, without
}

// open removes the columns of a competitor and of those within three steps of it, and returns how
// many more may be removed.
func (n *neighbourhoods) open(columns []int32, from, left int) int {
	wave := []int32{int32(from)}
	for range 4 {
		var next []int32
		for _, i := range wave {
			if columns[i] == none || left == 0 {
				continue
			}
			columns[i] = none
			left--
			for _, limit := range n.own[i] {
				next = append(next, n.users[limit]...)
			}
		}
		wave = next
	}
	return left
}

package solver

import "slices"

// nodeChoices lists the columns of a node: the choices of replicas to remove, and of shares of odd
// sizes to place on it.
type nodeChoices struct {
	own     []occupant
	left    int64   // free accelerators beside all existing replicas
	odd     []int   // sizes
	sizes   []int   // of the limits of blocks that count the node
	terms   []int32 // these limits, then the existing replicas of each occupant
	counts  []int32 // of each occupant, the replicas to remove
	placed  []int64 // of each odd size, the shares
	columns []column
}

// list lists the choices of occupants at and so on. The first of all removes and places nothing.
func (n *nodeChoices) list(at int, freed int64) {
	if at == len(n.own) {
		n.place(0, freed, n.room(freed))
		return
	}
	for count := int32(0); count <= n.own[at].count; count++ {
		n.counts[at] = count
		n.list(at+1, freed+int64(count)*n.own[at].gpus)
	}
	n.counts[at] = 0
}

func (n *nodeChoices) room(freed int64) int64 { return max(0, n.left+freed) }

// place lists the choices of odd sizes at and so on, on a node with so many free accelerators left.
func (n *nodeChoices) place(at int, freed, left int64) {
	if at == len(n.odd) {
		if len(n.columns) == 0 || !n.isDominated(freed, left) {
			n.columns = append(n.columns, n.column(left))
		}
		return
	}
	size := int64(n.odd[at])
	for n.placed[at] = 0; left >= 0; n.placed[at]++ {
		n.place(at+1, freed, left)
		left -= size
	}
	n.placed[at] = 0
}

// isDominated reports whether one of the removed replicas could stay, or another share of an odd
// size be placed, and leave the same blocks.
func (n *nodeChoices) isDominated(freed, left int64) bool {
	used := n.room(freed) - left
	for i, count := range n.counts {
		if count > 0 && n.sameBlocks(left, n.room(freed-n.own[i].gpus)-used) {
			return true
		}
	}
	for _, size := range n.odd {
		if n.sameBlocks(left, left-int64(size)) {
			return true
		}
	}
	return false
}

// sameBlocks reports whether so many free accelerators, which may be below zero, have the same
// blocks as the larger number.
func (n *nodeChoices) sameBlocks(more, less int64) bool {
	if less < 0 {
		return false
	}
	for _, size := range n.sizes {
		if !slices.Contains(n.odd, size) && more/int64(size) != less/int64(size) {
			return false
		}
	}
	return true
}

// column is the current choice, which leaves so many free accelerators.
func (n *nodeChoices) column(left int64) column {
	var loads []load
	for i, size := range n.sizes {
		more := left/int64(size) - n.room(0)/int64(size)
		if at := slices.Index(n.odd, size); at >= 0 {
			more = n.placed[at]
		}
		if more != 0 {
			loads = append(loads, load{int32(i), int32(-more)})
		}
	}
	for i, count := range n.counts {
		if count > 0 {
			loads = append(loads, load{int32(len(n.sizes) + i), count})
		}
	}
	return column{loads: loads, at: int32(len(n.columns))}
}

package solver

import (
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// seatByNode has, for each option and node, the shares that are placed on the node in addition to
// the replicas that stay on it.
func (g *milpProgram) seatByNode(p Problem, pool Pool) {
	taken := make([][]milpTerm, len(pool.Nodes))
	for _, i := range milpTakers(p, pool.Accelerator) {
		o := p.Options[i]
		stay := g.holdings(p, pool, i, taken)
		shares := []milpTerm{{-float64(max(1, o.Nodes)), i}}
		for _, s := range stay {
			shares = append(shares, milpTerm{float64(max(1, o.Nodes)), s})
		}
		for node := range pool.Nodes {
			y := g.column(milpColumn{high: -1, whole: true})
			shares = append(shares, milpTerm{1, y})
			taken[node] = append(taken[node], milpTerm{float64(o.GPUs), y})
		}
		g.row("=", 0, shares...)
	}
	for node, terms := range taken {
		if len(terms) > 0 {
			g.row("<=", float64(pool.Nodes[node].Free), terms...)
		}
	}
}

// holdings has a switch for each existing replica of an option: it stays on its nodes or is
// removed. As many stay as the plan has replicas, so that new ones start only if all stay. The
// replicas that stay are added to the use of the nodes.
func (g *milpProgram) holdings(p Problem, pool Pool, i int, taken [][]milpTerm) []int {
	var stay []int
	o := p.Options[i]
	for _, nodes := range o.Held {
		s := g.column(milpColumn{high: 1, whole: true})
		stay = append(stay, s)
		for _, node := range nodes {
			if int(node) >= len(pool.Nodes) {
				panic(fmt.Sprintf("a program needs holdings on nodes of the pool, not on %d of %d", node, len(pool.Nodes)))
			}
			taken[node] = append(taken[node], milpTerm{float64(o.GPUs), s})
		}
	}
	if len(stay) == 0 {
		return nil
	}
	fresh := g.column(milpColumn{high: 1, whole: true}) // whether there are new ones
	some := []milpTerm{{1, i}, {-float64(max(o.Range.Min, o.Range.Max)), fresh}}
	for _, s := range stay {
		g.row("<=", 0, milpTerm{1, fresh}, milpTerm{-1, s})
		some = append(some, milpTerm{-1, s})
	}
	g.row("<=", 0, some...)
	return stay
}

// seatByLevel has, for each size and each level of free accelerators, the shares of the size on the
// nodes of the level. If sizes divide each other, the shares of one size and above fit on a node
// exactly if they fit into its whole multiples of the size.
func (g *milpProgram) seatByLevel(p Problem, pool Pool) {
	sizes, shares := milpSizes(p, pool.Accelerator)
	seated := make([][]milpTerm, len(sizes))
	for _, level := range milpLevels(pool) {
		nodes := 0
		for _, n := range pool.Nodes {
			if n.Free == level {
				nodes++
			}
		}
		var above []milpTerm // of this size and the larger ones
		for s, size := range slices.Backward(sizes) {
			if size > level {
				continue
			}
			z := g.column(milpColumn{high: -1, whole: true})
			seated[s] = append(seated[s], milpTerm{1, z})
			above = append(above, milpTerm{float64(size), z})
			g.row("<=", float64(size*(level/size)*nodes), slices.Clone(above)...)
		}
	}
	for s := range sizes {
		g.row("=", 0, append(seated[s], shares[s]...)...)
	}
}

// seatBySum limits the shares of each size and above to the whole multiples of the size on all
// nodes together.
func (g *milpProgram) seatBySum(p Problem, pool Pool) {
	sizes, shares := milpSizes(p, pool.Accelerator)
	var above []milpTerm
	for s, size := range slices.Backward(sizes) {
		room := 0
		for _, n := range pool.Nodes {
			room += size * (n.Free / size)
		}
		for _, t := range shares[s] {
			above = append(above, milpTerm{-float64(size) * t.factor, t.column})
		}
		g.row("<=", float64(room), above...)
	}
}

// milpTakers are the options that use accelerators of the type.
func milpTakers(p Problem, kind fleet.Accelerator) []int {
	var takers []int
	for i, o := range p.Options {
		if o.Accelerator == kind && o.GPUs > 0 {
			takers = append(takers, i)
		}
	}
	return takers
}

// milpSizes are the sizes on an accelerator type, ascending, and minus the shares of each that the
// options have.
func milpSizes(p Problem, kind fleet.Accelerator) (sizes []int, shares [][]milpTerm) {
	takers := milpTakers(p, kind)
	for _, i := range takers {
		sizes = append(sizes, p.Options[i].GPUs)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	for s := 1; s < len(sizes); s++ {
		if sizes[s]%sizes[s-1] != 0 {
			panic("a program by levels needs sizes that divide each other")
		}
	}
	shares = make([][]milpTerm, len(sizes))
	for _, i := range takers {
		o := p.Options[i]
		s := slices.Index(sizes, o.GPUs)
		shares[s] = append(shares[s], milpTerm{-float64(max(1, o.Nodes)), i})
	}
	return sizes, shares
}

func milpLevels(pool Pool) []int {
	var levels []int
	for _, n := range pool.Nodes {
		levels = append(levels, n.Free)
	}
	slices.Sort(levels)
	return slices.Compact(levels)
}

package solver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

const (
	maxReplicas = 1 << 20
	maxPrice    = 1e15
	maxDuration = 30 * 24 * time.Hour
)

// usableDemands returns the demands that count, sorted.
func usableDemands(rows []Demand) []Demand {
	sorted := true
	for i := 1; i < len(rows) && sorted; i++ {
		sorted = compareServed(&rows[i-1], &rows[i]) < 0
	}
	demands := slices.Clone(rows)
	for i := range demands {
		demands[i].Penalty = usablePenalty(demands[i].Penalty)
	}
	if sorted {
		return demands
	}
	slices.SortFunc(demands, func(a, b Demand) int {
		// Unknown first, then the largest; no penalty is the highest one.
		return cmp.Or(
			compareServed(&a, &b),
			-cmp.Compare(unknown(a.Amount), unknown(b.Amount)),
			-cmp.Compare(a.Amount, b.Amount),
			slices.CompareFunc(a.Penalty, b.Penalty, func(x, y Piece) int {
				return cmp.Or(cmp.Compare(x.Share, y.Share), cmp.Compare(x.Price, y.Price))
			}),
			-cmp.Compare(a.Priority, b.Priority),
		)
	})
	return slices.CompactFunc(demands, func(a, b Demand) bool { return compareServed(&a, &b) == 0 })
}

func compareServed(a, b *Demand) int {
	return cmp.Or(a.Model.Compare(b.Model), cmp.Compare(a.Role, b.Role))
}

// usablePenalty returns the pieces that count, the cheapest first, for the whole demand; nil if one
// of them is invalid.
func usablePenalty(pieces []Piece) []Piece {
	if len(pieces) == 0 || len(pieces) <= mostPieces && areUsable(pieces) {
		return pieces
	}
	return joinPieces(sortedPieces(pieces))
}

// mostPieces is the largest number of pieces of a penalty.
const mostPieces = 64

// joinPieces joins neighbours, so that there are not too many.
func joinPieces(pieces []Piece) []Piece {
	if len(pieces) <= mostPieces {
		return pieces
	}
	joined := make([]Piece, 0, mostPieces)
	for own := range slices.Chunk(pieces, (len(pieces)+mostPieces-1)/mostPieces) {
		var all Piece
		for _, p := range own {
			all.Share += p.Share
			all.Price += float64(p.Share * p.Price)
		}
		all.Price /= all.Share
		joined = append(joined, all)
	}
	return joined
}

// sortedPieces returns the pieces that count, the cheapest first, for the whole demand; nil if one
// of them is invalid.
func sortedPieces(pieces []Piece) []Piece {
	var clean []Piece
	total := 0.0
	for _, p := range pieces {
		if !usable(p.Price, maxPrice) || !usable(p.Share, math.MaxFloat64) {
			return nil
		}
		if p.Share > 0 {
			clean = append(clean, p)
		}
	}
	slices.SortFunc(clean, func(a, b Piece) int { return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Share, b.Share)) })
	for i := range clean {
		clean[i].Share = min(clean[i].Share, 1-total)
		total += clean[i].Share
		if total >= 1 {
			return clean[:i+1]
		}
	}
	if len(clean) > 0 {
		clean[len(clean)-1].Share += 1 - total
	}
	return clean
}

// areUsable reports whether the pieces are valid, sorted and complete, as most are.
func areUsable(pieces []Piece) bool {
	total := 0.0
	for i, p := range pieces {
		if !usable(p.Price, maxPrice) || !(p.Share > 0 && p.Share <= 1) || i > 0 && pieces[i-1].Price > p.Price {
			return false
		}
		total += p.Share
	}
	return total == 1
}

func compareOptions(a, b *Option) int {
	if byModel := cmp.Or(a.Model.Compare(b.Model), cmp.Compare(a.Role, b.Role)); byModel != 0 {
		return byModel
	}
	return a.Variant.Compare(b.Variant)
}

func compareContent(a, b *Option) int {
	return cmp.Or(
		cmp.Compare(a.Capacity, b.Capacity),
		cmp.Compare(a.Price, b.Price),
		cmp.Compare(a.Startup, b.Startup),
		cmp.Compare(a.Now, b.Now),
		cmp.Compare(a.Range.Min, b.Range.Min),
		cmp.Compare(a.Range.Max, b.Range.Max),
		cmp.Compare(a.Range.Floor(), b.Range.Floor()),
		cmp.Compare(a.Accelerator, b.Accelerator),
		cmp.Compare(a.GPUs, b.GPUs),
		cmp.Compare(a.Nodes, b.Nodes),
		cmp.Compare(a.Placement, b.Placement),
		slices.CompareFunc(a.Held, b.Held, slices.Compare[[]int32]),
	)
}

// read sets a row from an option.
func (r *row) read(o *Option, place int32) {
	r.option, r.class, r.weighed = place, none, true
	r.startup = int64(wholeSeconds(o.Startup) / time.Second)
	r.capacity, r.price = o.Capacity, o.Price
	r.domain, r.now = usableRange(o.Range), countOf(o.Now)
	if !usable(o.Capacity, math.MaxFloat64) {
		r.capacity, r.weighed = 0, false
	}
	if !usable(o.Price, maxPrice) {
		r.price, r.weighed = 0, false
	}
	if !r.weighed {
		r.fix()
	}
}

func usableRange(r fleet.Range) fleet.Range {
	least, idle := countOf(r.Min), countOf(r.Idle)
	clean := fleet.Range{Min: least, Max: max(least, countOf(r.Max))}
	if r.AllowsIdle && idle < least {
		clean.Idle, clean.AllowsIdle = idle, true
	}
	return clean
}

// fix fixes the row at its existing replicas, within its range.
func (r *row) fix() {
	n := r.domain.Clamp(r.now)
	r.domain = fleet.Range{Min: n, Max: n}
}

func unknown(amount float64) int {
	if usable(amount, math.MaxFloat64) {
		return 0
	}
	return 1
}

func usable(x, limit float64) bool { return x >= 0 && x <= limit }

func countOf(n int) int { return max(0, min(n, maxReplicas)) }

func wholeSeconds(d time.Duration) time.Duration {
	return max(0, min(d, maxDuration)).Round(time.Second)
}

package solver

import "slices"

const (
	// mostLinks bounds the changes of a chain, and mostTried the changes that are tried for each.
	mostLinks = 8
	mostTried = 30
)

// chains changes several competitors at once: a change that does not help alone is followed by the
// best one that repairs the limit that it violates the most, and so on (an ejection chain). A node
// that removes replicas for a block takes those of models that then use others.
func (p *polish) chains(steps int) (changed bool) {
	p.index()
	clear(p.moved)
	for _, i := range slices.Clone(p.order) {
		w := &p.ways[i]
		if p.steps >= steps {
			return changed
		}
		if i == p.current[w.model] {
			continue
		}
		if w.regret-p.ways[p.current[w.model]].regret >= p.total() {
			continue
		}
		if p.chain(i) {
			changed = true
		}
	}
	return changed
}

// chain tries a chain that starts with a way, and takes it back if it does not help.
func (p *polish) chain(way int32) bool {
	most := p.total()
	regret := p.regret
	cost := int64(0)
	var before []int32
	link := func(i int32) {
		w := &p.ways[i]
		cost += p.gain(i)
		before = append(before, p.current[w.model])
		p.moved[w.model] = true
		p.take(i)
	}
	link(way)
	limit := p.worst()
	for len(before) < mostLinks && limit != none && p.regret-regret < most {
		next := p.repair(limit)
		if next == none {
			break
		}
		link(next)
		limit = p.worst()
	}
	for _, i := range before {
		p.moved[p.ways[i].model] = false
	}
	if cost < 0 {
		return true
	}
	for _, i := range slices.Backward(before) {
		p.take(i)
	}
	return false
}

// worst returns the limit whose over-use weighs the most; none if no limit is over-used.
func (p *polish) worst() int32 {
	worst, most := int32(none), int64(0)
	for i, over := range p.over {
		if over > 0 && over*p.weight[i] > most {
			worst, most = int32(i), over*p.weight[i]
		}
	}
	return worst
}

// repair returns the change that best reduces the over-use of a limit.
func (p *polish) repair(limit int32) int32 {
	best, least := int32(none), int64(0)
	tried := 0
	for _, i := range p.helping[limit] {
		w := &p.ways[i]
		if p.moved[w.model] || i == p.current[w.model] || !p.reduces(i, limit) {
			continue
		}
		if tried++; tried > mostTried {
			break
		}
		if gain := p.gain(i); best == none || gain < least {
			best, least = i, gain
		}
	}
	return best
}

// reduces reports whether a way uses less of a limit than the current one of its model.
func (p *polish) reduces(way, limit int32) bool {
	return p.amount(way, limit) < p.amount(p.current[p.ways[way].model], limit)
}

func (p *polish) amount(way, limit int32) (amount int64) {
	w := &p.ways[way]
	for _, u := range p.uses[w.from:w.to] {
		if u.limit == limit {
			amount += u.amount
		}
	}
	return amount
}

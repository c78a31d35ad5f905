package solver

import (
	"cmp"
	"slices"
)

// overWeight is the weight of over-use of a limit, as a multiple of its price. Unused capacity has
// weight one.
const overWeight = 3

// A local search for a plan among the columns of the models. It starts with the cheapest columns at
// the prices, which over-use some limits a little and leave others unused. It changes one model or
// two at a time, as long as that lowers
//
//	Σ reduced cost + Σ price·unused + overWeight·Σ price·over-use
//
// The reduced cost of a column is its cost at the prices above that of the cheapest column. For a
// plan that keeps the limits, the sum is the gap to the bound.
type polish struct {
	k       *component
	ways    []way
	uses    []use   // of all ways
	first   []int32 // of each model, among the ways
	current []int32 // index of the current way of each model
	over    []int64 // of each limit, the use above its slack
	weight  []int64 // of each limit, of over-use
	regret  int64

	delta   []int64
	touched []int32
	order   []int32
	moved   []bool
	// helping is, for each limit, the ways that use less of it than the current one of their model,
	// followed by those that use more.
	helping [][]int32
	steps   int
}

// way is one column of one model.
type way struct {
	model, column int32
	from, to      int32 // its uses
	regret        int64
}

func newPolish(k *component) *polish {
	p := &polish{
		k: k, over: make([]int64, len(k.slack)), weight: make([]int64, len(k.slack)), delta: make([]int64, len(k.slack)),
		moved: make([]bool, len(k.models)), helping: make([][]int32, 2*len(k.slack)),
	}
	ways := 0
	for i := range k.models {
		ways += len(k.models[i].columns)
	}
	p.ways, p.uses = make([]way, 0, ways), make([]use, 0, 4*ways)
	for i, price := range k.typicalPrices() {
		p.over[i] = -k.slack[i]
		p.weight[i] = overWeight * max(k.prices[i], int64(price)/4, 1)
	}
	for i := range k.models {
		p.add(int32(i))
	}
	p.first = append(p.first, int32(len(p.ways)))
	return p
}

// add adds the ways of a model, and selects the cheapest.
func (p *polish) add(model int32) {
	m := &p.k.models[model]
	p.first = append(p.first, int32(len(p.ways)))
	p.current = append(p.current, int32(len(p.ways)+m.best))
	for j := range m.columns {
		x := &m.columns[j]
		w := way{model: model, column: int32(j), from: int32(len(p.uses)), regret: m.priced(x) - m.value}
		for i, n := range x.counts {
			if class := m.items[i].class; class != none && n != 0 {
				for _, u := range p.k.classes[class].uses {
					p.uses = append(p.uses, use{u.limit, u.amount * int64(n)})
				}
			}
		}
		w.to = int32(len(p.uses))
		if j == m.best {
			p.regret += w.regret
			for _, u := range p.uses[w.from:w.to] {
				p.over[u.limit] += u.amount
			}
		}
		p.ways = append(p.ways, w)
	}
}

// imbalance is the cost of over-using a limit, or of not using all of it.
func (p *polish) imbalance(limit int32, over int64) int64 {
	if over > 0 {
		return over * p.weight[limit]
	}
	return -over * p.k.prices[limit]
}

func (p *polish) total() (total int64) {
	for i, over := range p.over {
		total += p.imbalance(int32(i), over)
	}
	return total
}

// measure records how much more of each limit a way uses than the current one of its model.
func (p *polish) measure(way int32) {
	w := &p.ways[way]
	now := &p.ways[p.current[w.model]]
	p.touched = p.touched[:0]
	for _, u := range p.uses[w.from:w.to] {
		if p.delta[u.limit] == 0 {
			p.touched = append(p.touched, u.limit)
		}
		p.delta[u.limit] += u.amount
	}
	for _, u := range p.uses[now.from:now.to] {
		if p.delta[u.limit] == 0 {
			p.touched = append(p.touched, u.limit)
		}
		p.delta[u.limit] -= u.amount
	}
}

// gain is the change of the objective of the search by a way.
func (p *polish) gain(way int32) (change int64) {
	p.steps++
	p.measure(way)
	w := &p.ways[way]
	change = w.regret - p.ways[p.current[w.model]].regret
	for _, limit := range p.touched {
		if d := p.delta[limit]; d != 0 {
			change += p.imbalance(limit, p.over[limit]+d) - p.imbalance(limit, p.over[limit])
			p.delta[limit] = 0
		}
	}
	return change
}

// take makes a way the current one of its model.
func (p *polish) take(way int32) {
	p.measure(way)
	for _, limit := range p.touched {
		p.over[limit] += p.delta[limit]
		p.delta[limit] = 0
	}
	w := &p.ways[way]
	p.regret += w.regret - p.ways[p.current[w.model]].regret
	p.current[w.model] = way
}

// run searches until the objective is at most enough, no change of one or two models lowers it, or
// the budget ends. It returns the steps that it used.
func (p *polish) run(budget int, enough int64) int {
	for p.steps < budget/stepsPerChange {
		if p.singles() {
			continue
		}
		if p.regret+p.total() <= enough && !p.breaks() || !p.pairs(budget/stepsPerChange) {
			break
		}
	}
	return p.steps * stepsPerChange
}

// stepsPerChange is the charge in steps for evaluating a change of a plan.
const stepsPerChange = 8

// breaks reports whether a limit is over-used.
func (p *polish) breaks() bool {
	return slices.ContainsFunc(p.over, func(over int64) bool { return over > 0 })
}

// singles changes single models, the largest gain first.
func (p *polish) singles() (changed bool) {
	type candidate struct {
		way  int32
		gain int64
	}
	var candidates []candidate
	total := p.total()
	for i := range p.ways {
		w := &p.ways[i]
		if w.regret-p.ways[p.current[w.model]].regret >= total {
			continue
		}
		if gain := p.gain(int32(i)); gain < 0 {
			candidates = append(candidates, candidate{int32(i), gain})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.gain, b.gain), cmp.Compare(a.way, b.way)) })
	for i, c := range candidates {
		gain := p.gain(c.way)
		if gain < 0 && (i == len(candidates)-1 || gain <= candidates[i+1].gain/2) {
			p.take(c.way)
			changed = true
		}
	}
	return changed
}

// pairs changes two models at once: for a change that does not help alone, it searches for a second
// one that repairs the limits.
func (p *polish) pairs(steps int) (changed bool) {
	p.index()
	clear(p.moved)
	for _, i := range p.order {
		w := &p.ways[i]
		if p.steps >= steps {
			return changed
		}
		if p.moved[w.model] || i == p.current[w.model] {
			continue
		}
		if more := w.regret - p.ways[p.current[w.model]].regret; more >= p.total() {
			break
		}
		if other := p.partner(i); other != none {
			p.moved[w.model], p.moved[p.ways[other].model] = true, true
			p.take(i)
			p.take(other)
			changed = true
		}
	}
	return changed
}

// index sorts the ways by their reduced cost, and records for each limit which of them use less of
// it and which use more.
func (p *polish) index() {
	more := func(i int32) int64 { return p.ways[i].regret - p.ways[p.current[p.ways[i].model]].regret }
	total := p.total() + p.most()
	p.order = p.order[:0]
	for i := range p.ways {
		if more(int32(i)) < total {
			p.order = append(p.order, int32(i))
		}
	}
	slices.SortFunc(p.order, func(a, b int32) int { return cmp.Or(cmp.Compare(more(a), more(b)), cmp.Compare(a, b)) })
	for i := range p.helping {
		p.helping[i] = p.helping[i][:0]
	}
	for _, i := range p.order {
		p.measure(i)
		for _, limit := range p.touched {
			switch d := p.delta[limit]; {
			case d < 0:
				p.helping[2*limit] = append(p.helping[2*limit], i)
			case d > 0:
				p.helping[2*limit+1] = append(p.helping[2*limit+1], i)
			}
			p.delta[limit] = 0
		}
	}
}

// most is the largest reduced cost of a current way.
func (p *polish) most() (most int64) {
	for _, i := range p.current {
		most = max(most, p.ways[i].regret)
	}
	return most
}

// partner finds the way of another model that best complements a change of one; none if both
// together do not help.
func (p *polish) partner(way int32) int32 {
	w := &p.ways[way]
	before := p.current[w.model]
	total := p.total()
	worst, least := int32(none), int64(0)
	p.measure(way)
	for _, limit := range p.touched {
		if more := p.imbalance(limit, p.over[limit]+p.delta[limit]) - p.imbalance(limit, p.over[limit]); more > least {
			worst, least = limit, more
		}
		p.delta[limit] = 0
	}
	if worst == none {
		return none
	}
	cost := w.regret - p.ways[before].regret
	p.take(way)
	cost += p.total() - total
	side := 2 * worst
	if p.over[worst] <= 0 {
		side++
	}
	best, most := int32(none), int64(0)
	now := p.total()
	for tries, i := range p.helping[side] {
		v := &p.ways[i]
		more := v.regret - p.ways[p.current[v.model]].regret
		if cost+more-now >= most || tries > 400 {
			break
		}
		if p.moved[v.model] || v.model == w.model {
			continue
		}
		if gain := cost + p.gain(i); gain < most {
			best, most = i, gain
		}
	}
	p.take(before)
	return best
}

// apply writes the plan to a candidate.
func (p *polish) apply(d *draft) {
	for i := range p.k.models {
		m := &p.k.models[i]
		x := &m.columns[p.ways[p.current[i]].column]
		d.put(m, x.values(d.values), x.cost)
	}
}

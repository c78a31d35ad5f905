package solver

import (
	"cmp"
	"math"
	"slices"
)

// overWeight is the weight of over-use of a limit, as a multiple of its price. Unused capacity has
// weight one.
const overWeight = 3

// A local search for a plan among the columns of the models. It starts with the cheapest columns
// at the prices, which over-use some limits a little and leave others unused. It changes one
// competitor or a chain of them at a time, as long as that lowers
//
//	Σ reduced cost + Σ price·unused + overWeight·Σ price·over-use
//
// The reduced cost of a column is its cost at the prices above that of the cheapest column. For
// a plan that keeps the limits, the sum is the gap to the bound.
type polish struct {
	k       *component
	ways    []way
	uses    []use   // of all ways
	current []int32 // index of the current way of each model
	over    []int64 // of each limit, the use above its slack
	weight  []int64 // of each limit, of over-use
	regret  int64

	delta   []int64
	touched []int32
	order   []int32
	moved   []bool
	// helping is, for each limit, the ways that use less of it than the current one of their model
	helping [][]int32
	steps   int
	// best is the ways of the best plan that keeps the limits, and its objective
	best  []int32
	least int64
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
		moved: make([]bool, k.size()), helping: make([][]int32, len(k.slack)),
	}
	ways := 0
	for i := range k.size() {
		ways += len(k.competitor(i).columns)
	}
	p.ways, p.uses = make([]way, 0, ways), make([]use, 0, 4*ways)
	for i, price := range k.typicalPrices() {
		p.over[i] = -k.slack[i]
		p.weight[i] = overWeight * max(k.prices[i], int64(price)/4, 1)
	}
	for i := range k.size() {
		p.add(int32(i))
	}
	return p
}

// add adds the ways of a model, and selects the cheapest.
func (p *polish) add(model int32) {
	m := p.k.competitor(int(model))
	p.current = append(p.current, int32(len(p.ways)+m.best))
	for j := range m.columns {
		x := &m.columns[j]
		w := way{model: model, column: int32(j), from: int32(len(p.uses)), regret: m.priced(x) - m.value}
		for _, l := range x.loads {
			for _, u := range p.k.classes[m.terms[l.term]].uses {
				p.uses = append(p.uses, use{u.limit, u.amount * int64(l.amount)})
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

// run searches until the objective is at most enough, no chain lowers it, or so many changes were
// tried. If a limit is then over-used, it goes on with a larger weight of that limit. It leaves the
// best plan that keeps the limits, if there is one, and returns the number of changes.
func (p *polish) run(most int, enough int64) int {
	p.least = math.MaxInt64
	for raised := 0; p.steps < most; {
		p.record()
		if p.singles() {
			continue
		}
		if p.regret+p.total() <= enough && !p.breaks() {
			break
		}
		if p.chains(most) {
			continue
		}
		if raised++; raised > mostRaised || !p.raiseWeights() {
			break
		}
	}
	p.record()
	for _, way := range p.best {
		p.take(way)
	}
	return p.steps
}

// mostRaised is the number of times that weights are doubled.
const mostRaised = 12

// raiseWeights doubles the weights of over-used limits; false if there are none.
func (p *polish) raiseWeights() (raised bool) {
	for i, over := range p.over {
		if over > 0 {
			p.weight[i] *= 2
			raised = true
		}
	}
	return raised
}

// record remembers the plan if it keeps the limits and is the best.
func (p *polish) record() {
	if objective := p.regret + p.total(); objective < p.least && !p.breaks() {
		p.best, p.least = append(p.best[:0], p.current...), objective
	}
}

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

// index sorts the ways by their reduced cost, and records for each limit which of them use less of
// it.
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
			if p.delta[limit] < 0 {
				p.helping[limit] = append(p.helping[limit], i)
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

// apply writes the plan to a candidate.
func (p *polish) apply(d *draft) {
	for i := range p.k.models {
		m := &p.k.models[i]
		x := &m.columns[p.ways[p.current[i]].column]
		d.put(m, x.values(d.values), x.cost)
	}
	for i := range p.k.nodes {
		d.choose(i, p.k.nodes[i].columns[p.ways[p.current[len(p.k.models)+i]].column].at)
	}
}

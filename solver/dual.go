package solver

import (
	"math"
	"slices"
)

// evaluate solves every model at the prices, stores the columns that it finds, and returns the dual
// bound, a lower bound on the cost of the component: Σ value − Σ price·slack.
func (k *component) evaluate() (bound int64) {
	for i := range k.models {
		m := &k.models[i]
		k.setItemPrices(m)
		bound += k.findColumn(m)
		k.steps -= stepsPerModel
	}
	for i := range k.nodes {
		n := &k.nodes[i]
		k.setItemPrices(n)
		n.best = n.cheapest()
		n.value = n.priced(&n.columns[n.best])
		bound += n.value
		k.steps -= stepsPerColumn * len(n.columns)
	}
	for i, price := range k.prices {
		bound -= price * k.slack[i]
	}
	return bound
}

// setPrices gives the items of all models the prices of the component. The nodes of a tree share
// items.
func (k *component) setPrices() {
	for i := range k.models {
		k.setItemPrices(&k.models[i])
	}
	for i := range k.nodes {
		k.setItemPrices(&k.nodes[i])
	}
}

// setItemPrices adds the prices of the limits to the terms and the items of a competitor.
func (k *component) setItemPrices(m *competitor) {
	for i, class := range m.terms {
		price := int64(0)
		for _, u := range k.classes[class].uses {
			price += u.amount * k.prices[u.limit]
		}
		m.termPrices[i] = price
	}
	for i := range m.items {
		v := &m.items[i]
		v.price, v.stay = v.own, 0
		if v.term != none {
			v.price += m.termPrices[v.term]
		}
		if v.stayTerm != none {
			v.stay = v.own + m.termPrices[v.stayTerm] - v.price
			if v.quotaTerm != none {
				v.stay += m.termPrices[v.quotaTerm]
			}
		}
	}
}

const (
	// stepsPerModel is the charge in steps for visiting a model, in addition to its search.
	// mostPerModel bounds the steps of that search at one set of prices.
	stepsPerModel = 32
	mostPerModel  = 2000
)

// findColumn finds the cheapest column of a model at the prices of its items, and returns a lower
// bound on its cost there.
func (k *component) findColumn(m *competitor) int64 {
	if m.need == 0 || len(m.items) == 0 {
		m.value = m.unservedCost(m.need)
		m.best = m.remember(make([]int64, len(m.items)))
		return m.value
	}
	if m.isConvex() {
		k.steps -= k.search.minimise(m.cover, mostPerModel)
		m.best = m.remember(k.search.best)
		m.value = k.search.bound
		return m.value
	}
	m.value = unreachable
	least := unreachable
	var best []int64
	for c := range m.modes() {
		k.steps -= k.search.minimise(c.cover, mostPerModel)
		m.value = min(m.value, c.cost+k.search.bound)
		if cost := c.cost + k.search.bestCost; best == nil || cost < least {
			best, least = c.add(best, k.search.best), cost
		}
	}
	m.best = m.remember(best)
	return m.value
}

const (
	// mostRounds bounds the temperatures of an ascent, each half of the one before, and
	// stepsPerRound the Newton steps at each.
	mostRounds    = 20
	stepsPerRound = 10
	// softness is the smoothing, as a share of the bound, from which dives start.
	softness = 0.05
)

// raise maximises the dual bound: it follows the maximum of the smoothed dual as the temperature
// falls. It leaves the component at the best prices that it found, with the best column of each
// model at these prices, and returns the bound.
func (k *component) raise() (bound int64) {
	clear(k.prices)
	bound = k.evaluate()
	for i := range k.models {
		k.models[i].seed()
	}
	s := newSmooth(k)
	s.temperature = k.typicalCost()
	s.reach = 4 * s.temperature
	floor := s.temperature / 2048
	best, x := slices.Clone(k.prices), make([]float64, len(k.prices))
	settled, last := 0, bound
	for round := 0; round < mostRounds && settled < 3 && k.steps > 0; round++ {
		value := s.climb(x, stepsPerRound)
		for i := range x {
			k.prices[i] = int64(math.Round(x[i]))
		}
		found := k.evaluate()
		if float64(found)-value > float64(softness*math.Abs(value)) {
			k.soft = s.temperature
		}
		if float64(found-last) >= k.settles()*math.Abs(float64(found)) {
			settled = 0
		} else if s.temperature <= 128*floor {
			settled++
		}
		last = found
		if found > bound {
			bound = found
			copy(best, k.prices)
		}
		s.temperature = max(floor, s.temperature/2)
	}
	copy(k.prices, best)
	return max(bound, k.evaluate())
}

// settles is the relative gain below which a round counts as no progress. Small fleets have cheap
// rounds and go further.
func (k *component) settles() float64 {
	if len(k.models) < 200 {
		return 1e-5
	}
	return max(1e-5, min(k.c.tolerance/50, 1e-4))
}

// typicalCost is the mean value of the models.
func (k *component) typicalCost() float64 {
	if len(k.models) == 0 {
		return removalCost
	}
	total := 0.0
	for i := range k.models {
		total += float64(k.models[i].value)
	}
	return max(1, total/float64(len(k.models)))
}

// typicalPrices is, for each limit, the mean price of a replica per unit of the limit that it uses;
// the mean value of the models if none does.
func (k *component) typicalPrices() []float64 {
	prices, counts := make([]float64, len(k.slack)), make([]float64, len(k.slack))
	count := func(own int64, class int32) {
		for _, u := range k.classes[class].uses {
			prices[u.limit] += float64(own) / float64(u.amount)
			counts[u.limit]++
		}
	}
	for i := range k.models {
		m := &k.models[i]
		for j := range m.items {
			v := &m.items[j]
			if v.term != none {
				count(v.own, m.terms[v.term])
			}
			if v.stayTerm != none {
				count(v.own, m.terms[v.stayTerm])
			}
		}
	}
	for i := range prices {
		if prices[i] /= max(1, counts[i]); counts[i] == 0 {
			prices[i] = k.typicalCost()
		}
	}
	return prices
}

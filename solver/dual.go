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
}

// setItemPrices adds the prices of the limits to the items of a model.
func (k *component) setItemPrices(m *competitor) {
	for i := range m.items {
		v := &m.items[i]
		v.price = v.own
		if v.class != none {
			for _, u := range k.classes[v.class].uses {
				v.price += u.amount * k.prices[u.limit]
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
	k.steps -= k.search.minimise(m.cover, mostPerModel)
	m.best = m.remember(k.search.best)
	m.value = k.search.bound
	return m.value
}

// raise maximises the dual bound. It leaves the component at the best prices that it found, with
// the best column of each model at these prices, and returns the bound.
func (k *component) raise() (bound int64) {
	clear(k.prices)
	bound = k.evaluate()
	for i := range k.models {
		k.models[i].seed()
	}
	s := newSmooth(k)
	s.temperature = k.typicalCost()
	floor := s.temperature / 2048
	center, x := make([]float64, len(k.prices)), make([]float64, len(k.prices))
	radius := k.typicalPrices()
	least := slices.Clone(radius)
	for i := range radius {
		radius[i] *= 4
		least[i] /= 256
	}
	settled := 0
	for round := 0; round < mostRounds && settled < 2 && k.steps > 0; round++ {
		copy(x, center)
		s.climb(x, radius)
		for i := range x {
			k.prices[i] = int64(math.Round(x[i]))
		}
		found := k.evaluate()
		if float64(found-bound) >= k.settles()*math.Abs(float64(bound)) {
			settled = 0
		} else if s.temperature <= 128*floor {
			settled++
		}
		if found > bound {
			bound = found
			for i := range radius {
				if math.Abs(x[i]-center[i]) > 0.9*radius[i] {
					radius[i] *= 4
				}
			}
			copy(center, x)
		} else {
			for i := range radius {
				radius[i] = max(least[i], radius[i]/2)
			}
		}
		s.temperature = max(floor, s.temperature/2)
	}
	for i := range center {
		k.prices[i] = int64(math.Round(center[i]))
	}
	return max(bound, k.evaluate())
}

const mostRounds = 20

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
	total := 0.0
	for i := range k.models {
		total += float64(k.models[i].value)
	}
	return max(1, total/float64(len(k.models)))
}

// typicalPrices is, for each limit, the mean price of a replica per unit of the limit that it uses.
func (k *component) typicalPrices() []float64 {
	prices, counts := make([]float64, len(k.slack)), make([]float64, len(k.slack))
	for i := range k.items {
		v := &k.items[i]
		if v.class == none {
			continue
		}
		for _, u := range k.classes[v.class].uses {
			prices[u.limit] += float64(v.own) / float64(u.amount)
			counts[u.limit]++
		}
	}
	for i := range prices {
		prices[i] /= max(1, counts[i])
	}
	return prices
}

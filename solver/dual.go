package solver

import (
	"math"
	"slices"
)

// maxColumns is how many columns of a model are kept.
const maxColumns = 40

// evaluate solves every model at the prices, remembers what it finds, and returns a lower bound on the cost of the component:
// Σ value − Σ price·slack.
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
	// stepsPerModel is how many steps it counts to look at a model, beside the steps of its search, and mostPerModel bounds those
	// at one set of prices.
	stepsPerModel = 32
	mostPerModel  = 2000
)

// findColumn finds the cheapest column of a model at the prices of its items, and returns a lower bound on what it costs there.
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

// costOf is what values cost without prices of what is scarce.
func (m *competitor) costOf(values []int64) (cost int64) {
	left := m.need
	for i := range m.items {
		v := &m.items[i]
		cost += v.ownCost(values[i])
		left = remaining(left, v.capacity, values[i])
	}
	return cost + m.unservedCost(left)
}

// remember keeps a column, and returns its place.
func (m *competitor) remember(values []int64) int {
	for i := range m.columns {
		if m.columns[i].holds(values) {
			return i
		}
	}
	x := newColumn(m, values)
	if len(m.columns) >= maxColumns {
		at := m.worst()
		m.columns[at] = x
		return at
	}
	m.columns = append(m.columns, x)
	return len(m.columns) - 1
}

// worst returns the column that costs the most at the prices.
func (m *competitor) worst() int {
	worst, most := 0, int64(math.MinInt64)
	for i := range m.columns {
		if cost := m.priced(&m.columns[i]); cost > most {
			worst, most = i, cost
		}
	}
	return worst
}

// priced is what a column costs at the prices.
func (m *competitor) priced(x *column) int64 {
	cost := x.cost
	for i, n := range x.counts {
		v := &m.items[i]
		cost += int64(n) * (v.price - v.own)
	}
	return cost
}

// seed remembers simple columns: nothing, and each item alone carrying all of the demand or half of it.
func (m *competitor) seed() {
	values := make([]int64, len(m.items))
	m.remember(values)
	for i := range m.items {
		v := &m.items[i]
		full := divideUp(m.need, v.capacity)
		for _, n := range [...]int64{full, (full + 1) / 2} {
			values[i] = v.atLeast(n)
			m.remember(values)
		}
		values[i] = 0
	}
}

// stepsPerColumn is how many steps it counts to weigh a column.
const stepsPerColumn = 4

// smooth is the dual function with a soft minimum over the columns in the place of the minimum over all: concave, and smooth.
type smooth struct {
	k           *component
	temperature float64
	classPrice  []float64
	expected    []float64 // of each class, replicas
	covariance  []float64 // of each pair of classes
	gradient    []float64 // by limit
	hessian     []float64 // by pair of limits, of the negative function
	weights     []float64
	mean        []float64
	product     []float64
}

func newSmooth(k *component) *smooth {
	classes, limits := len(k.classes), len(k.slack)
	return &smooth{
		k: k, classPrice: make([]float64, classes), expected: make([]float64, classes), covariance: make([]float64, classes*classes),
		gradient: make([]float64, limits), hessian: make([]float64, limits*limits), product: make([]float64, limits*classes),
		weights: make([]float64, maxColumns),
	}
}

// at computes the function, its gradient and its curvature.
func (s *smooth) at(prices []float64) (value float64) {
	k := s.k
	for i := range s.classPrice {
		s.classPrice[i] = 0
		for _, u := range k.classes[i].uses {
			s.classPrice[i] += float64(float64(u.amount) * prices[u.limit])
		}
	}
	clear(s.expected)
	clear(s.covariance)
	for i := range k.models {
		value += s.model(&k.models[i])
		k.steps -= stepsPerColumn * len(k.models[i].columns)
	}
	for i, price := range prices {
		value -= float64(price * float64(k.slack[i]))
	}
	s.slopes()
	return value
}

// model returns the soft minimum of one model's columns, and adds what it expects.
func (s *smooth) model(m *competitor) float64 {
	least := math.Inf(1)
	if len(s.weights) < len(m.columns) {
		s.weights = make([]float64, 2*len(m.columns))
	}
	for i := range m.columns {
		x := &m.columns[i]
		cost := float64(x.cost)
		for j, n := range x.counts {
			if class := m.items[j].class; class != none && n != 0 {
				cost += float64(float64(n) * s.classPrice[class])
			}
		}
		s.weights[i] = cost
		least = min(least, cost)
	}
	total := 0.0
	for i := range m.columns {
		s.weights[i] = expOf((least - s.weights[i]) / s.temperature)
		total += s.weights[i]
	}
	s.expect(m, total)
	return least - float64(s.temperature*logOf(total))
}

// expect adds the mean and the covariance of the model's numbers of replicas.
func (s *smooth) expect(m *competitor, total float64) {
	items := len(m.items)
	if cap(s.mean) < items {
		s.mean = make([]float64, items)
	}
	mean := s.mean[:items]
	clear(mean)
	single := true
	for i := range m.columns {
		w := s.weights[i] / total
		s.weights[i] = w
		if w == 0 {
			continue
		}
		single = single && w == 1
		for j, n := range m.columns[i].counts {
			if n != 0 {
				mean[j] += float64(w * float64(n))
			}
		}
	}
	for j := range mean {
		if class := m.items[j].class; class != none {
			s.expected[class] += mean[j]
		}
	}
	if single {
		return
	}
	classes := int32(len(s.expected))
	for i := range m.columns {
		w := s.weights[i]
		if w == 0 {
			continue
		}
		counts := m.columns[i].counts
		for a := range mean {
			ca := m.items[a].class
			d := float64(w * (float64(counts[a]) - mean[a]))
			if ca == none || d == 0 {
				continue
			}
			for b := range mean {
				if cb := m.items[b].class; cb != none {
					s.covariance[ca*classes+cb] += float64(d * (float64(counts[b]) - mean[b]))
				}
			}
		}
	}
}

// slopes turns what classes expect into the gradient and the curvature by limits.
func (s *smooth) slopes() {
	k := s.k
	limits, classes := len(k.slack), len(k.classes)
	for i := range s.gradient {
		s.gradient[i] = -float64(k.slack[i])
	}
	clear(s.product)
	clear(s.hessian)
	for a := range k.classes {
		for _, u := range k.classes[a].uses {
			amount := float64(u.amount)
			s.gradient[u.limit] += float64(amount * s.expected[a])
			row := s.product[int(u.limit)*classes : int(u.limit+1)*classes]
			for b := range row {
				row[b] += float64(amount * s.covariance[a*classes+b])
			}
		}
	}
	for b := range k.classes {
		for _, u := range k.classes[b].uses {
			amount := float64(u.amount) / s.temperature
			for i := range limits {
				s.hessian[i*limits+int(u.limit)] += float64(amount * s.product[i*classes+b])
			}
		}
	}
}

// climb maximises the function from the prices within a box around them, by projected Newton steps. It changes the prices.
func (s *smooth) climb(prices, radius []float64) {
	limits := len(prices)
	low, high := make([]float64, limits), make([]float64, limits)
	for i := range prices {
		low[i] = max(0, prices[i]-radius[i])
		high[i] = min(float64(s.k.ceiling[i]), prices[i]+radius[i])
	}
	next, step := make([]float64, limits), make([]float64, limits)
	value := s.at(prices)
	for range mostNewtonSteps {
		if !s.direction(prices, low, high, step) {
			return
		}
		before := value
		for length := 1.0; ; length /= 4 {
			if length < 1e-3 {
				return
			}
			for i := range next {
				next[i] = max(low[i], min(high[i], prices[i]+float64(length*step[i])))
			}
			if value = s.at(next); value > before {
				break
			}
		}
		copy(prices, next)
		if value-before < 1e-6*math.Abs(value) {
			return
		}
	}
}

const mostNewtonSteps = 5

// direction solves for the Newton step of the prices that may move; false where none may.
func (s *smooth) direction(prices, low, high, step []float64) bool {
	limits := len(prices)
	var free []int
	for i := range prices {
		step[i] = 0
		blocked := s.gradient[i] <= 0 && prices[i] <= low[i] || s.gradient[i] >= 0 && prices[i] >= high[i]
		if !blocked {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return false
	}
	n := len(free)
	a, x := make([]float64, n*n), make([]float64, n)
	for i, row := range free {
		for j, column := range free {
			a[i*n+j] = s.hessian[row*limits+column]
		}
		// A limit that few columns tell about has little curvature: its step goes as far as the box.
		reach := max(high[row]-low[row], 1e-9)
		a[i*n+i] += float64(a[i*n+i]*1e-6) + float64(0.5*math.Abs(s.gradient[row]))/reach
		if a[i*n+i] == 0 { // it has no slope either
			a[i*n+i] = 1
		}
		x[i] = s.gradient[row]
	}
	if !solveSymmetric(a, x) {
		return false
	}
	for i, row := range free {
		step[row] = x[i]
	}
	return true
}

// solveSymmetric solves a·x = b of a positive definite matrix by Cholesky's method, in place; false where it is not.
func solveSymmetric(a, b []float64) bool {
	n := len(b)
	for j := range n {
		for i := j; i < n; i++ {
			sum := a[i*n+j]
			for l := range j {
				sum -= float64(a[i*n+l] * a[j*n+l])
			}
			if i == j {
				if !(sum > 0) {
					return false
				}
				a[j*n+j] = math.Sqrt(sum)
				continue
			}
			a[i*n+j] = sum / a[j*n+j]
		}
	}
	for i := range n {
		for l := range i {
			b[i] -= float64(a[i*n+l] * b[l])
		}
		b[i] /= a[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for l := i + 1; l < n; l++ {
			b[i] -= float64(a[l*n+i] * b[l])
		}
		b[i] /= a[i*n+i]
	}
	return true
}

// raise finds prices at which the bound is high. It leaves the component at the best prices that it found, with the best column
// of each model there, and returns the bound.
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
		if debug != nil {
			debug(round, s, bound, found)
		}
		if float64(found-bound) < 1e-5*math.Abs(float64(bound)) {
			settled++
		} else {
			settled = 0
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

var debug func(round int, s *smooth, bound, found int64)

const mostRounds = 20

// typicalCost is the mean value of the models.
func (k *component) typicalCost() float64 {
	total := 0.0
	for i := range k.models {
		total += float64(k.models[i].value)
	}
	return max(1, total/float64(len(k.models)))
}

// typicalPrices is for each limit the mean price of what takes one unit of it.
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

// enumerate has each model remember its columns that cost little more at the prices than the cheapest.
func (k *component) enumerate(most int64) {
	l := list{search: &k.search}
	for i := range k.models {
		m := &k.models[i]
		if m.need == 0 || len(m.items) == 0 {
			continue
		}
		k.setItemPrices(m)
		for reach := most; reach > 0; reach /= 2 {
			if l.collect(m.cover, m.value+reach, maxColumns/2, 400) {
				break
			}
		}
		for j := range l.costs {
			m.remember(l.found[j*len(m.items) : (j+1)*len(m.items)])
		}
		m.best = m.cheapest()
	}
}

// cheapest returns the column that costs the least at the prices.
func (m *competitor) cheapest() int {
	best := 0
	for i := range m.columns {
		if m.priced(&m.columns[i]) < m.priced(&m.columns[best]) {
			best = i
		}
	}
	return best
}

package solver

import "math"

// stepsPerColumn is the charge in steps for evaluating a column.
const stepsPerColumn = 2

// smooth is the smoothed dual: the dual function with a soft minimum over the columns instead of
// the minimum. It is concave and differentiable.
type smooth struct {
	k           *component
	temperature float64
	classPrice  []float64
	expected    []float64 // of each class, the expected replicas
	covariance  []float64 // of each pair of classes
	gradient    []float64 // by limit
	hessian     []float64 // by pair of limits, of the negative function
	weights     []float64
	mean        []float64
	moments     []float64 // of each pair of items
	product     []float64
	// diagonal is true if the curvature is that of each limit alone, without that of pairs: of many
	// limits, pairs would take too long
	diagonal bool
}

// mostPaired is the largest number of limits, and of classes, of which pairs are counted.
const mostPaired = 256

func newSmooth(k *component) *smooth {
	classes, limits := len(k.classes), len(k.slack)
	s := &smooth{
		k: k, classPrice: make([]float64, classes), expected: make([]float64, classes), gradient: make([]float64, limits),
		weights: make([]float64, maxColumns), diagonal: max(classes, limits) > mostPaired,
	}
	if s.diagonal {
		s.covariance, s.hessian = make([]float64, classes), make([]float64, limits)
	} else {
		s.covariance, s.hessian, s.product = make([]float64, classes*classes), make([]float64, limits*limits), make([]float64, limits*classes)
	}
	return s
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

// model returns the soft minimum of one model's columns, and adds its expectations.
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
	if len(s.mean) < items {
		s.mean, s.moments = make([]float64, items), make([]float64, items*items)
	}
	mean, moments := s.mean[:items], s.moments[:items*items]
	clear(mean)
	clear(moments)
	single := true
	for i := range m.columns {
		w := s.weights[i] / total
		s.weights[i] = w
		if w == 0 {
			continue
		}
		single = single && w == 1
		for a, n := range m.columns[i].counts {
			if n == 0 {
				continue
			}
			share := float64(w * float64(n))
			mean[a] += share
			for b, more := range m.columns[i].counts[:a+1] {
				if more != 0 {
					moments[a*items+b] += float64(share * float64(more))
				}
			}
		}
	}
	s.scatter(m, mean, moments, single)
}

// scatter adds the means and covariances of items to those of their classes; single tells that
// there are no covariances.
func (s *smooth) scatter(m *competitor, mean, moments []float64, single bool) {
	items, classes := len(mean), int32(len(s.expected))
	for a, x := range mean {
		ca := m.items[a].class
		if ca == none || x == 0 {
			continue
		}
		s.expected[ca] += x
		if single {
			continue
		}
		for b, y := range mean[:a+1] {
			cb := m.items[b].class
			if cb == none || y == 0 {
				continue
			}
			covariance := moments[a*items+b] - float64(x*y)
			if s.diagonal {
				if ca == cb {
					s.covariance[ca] += covariance
					if a != b {
						s.covariance[ca] += covariance
					}
				}
				continue
			}
			s.covariance[ca*classes+cb] += covariance
			if a != b {
				s.covariance[cb*classes+ca] += covariance
			}
		}
	}
}

// slopes converts the expectations of classes to the gradient and the curvature by limits.
func (s *smooth) slopes() {
	k := s.k
	limits, classes := len(k.slack), len(k.classes)
	for i := range s.gradient {
		s.gradient[i] = -float64(k.slack[i])
	}
	clear(s.product)
	clear(s.hessian)
	if s.diagonal {
		for i := range k.classes {
			for _, u := range k.classes[i].uses {
				amount := float64(u.amount)
				s.gradient[u.limit] += float64(amount * s.expected[i])
				s.hessian[u.limit] += float64(float64(amount*amount)*s.covariance[i]) / s.temperature
			}
		}
		return
	}
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

// climb maximises the function within a box around the prices, by projected Newton steps. It
// changes the prices.
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

// direction computes the Newton step of the prices that may move; false if none may.
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
	if s.diagonal {
		for _, i := range free {
			step[i] = s.gradient[i] / s.curvature(i, s.hessian[i], high[i]-low[i])
		}
		return true
	}
	n := len(free)
	a, x := make([]float64, n*n), make([]float64, n)
	for i, row := range free {
		for j, column := range free {
			a[i*n+j] = s.hessian[row*limits+column]
		}
		a[i*n+i] = s.curvature(row, a[i*n+i], high[row]-low[row])
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

// curvature returns that of a limit with a bound on its step. A limit that few columns use has
// little: its step may reach the edge of the box.
func (s *smooth) curvature(limit int, own, reach float64) float64 {
	own += float64(own*1e-6) + float64(0.5*math.Abs(s.gradient[limit]))/max(reach, 1e-9)
	if own == 0 { // it has no slope either
		return 1
	}
	return own
}

// solveSymmetric solves a·x = b for a positive definite matrix by Cholesky's method, in place;
// false if it is not positive definite.
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

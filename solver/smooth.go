package solver

import "math"

// stepsPerColumn is the charge in steps for evaluating a column.
const stepsPerColumn = 1

// smooth is the smoothed dual: the dual function with a soft minimum over the columns instead of
// the minimum. It is concave and differentiable.
type smooth struct {
	k           *component
	temperature float64
	*layout
	slopes
	other      slopes    // at the prices before or after the last step
	expected   []float64 // of each class, the expected amount
	covariance []float64 // of each pair of classes that a competitor uses
	reach      float64   // the largest step of a price, for an amount of one
	weights    []float64 // scratch: of the columns of a competitor
	mean       []float64 // scratch: of its terms
	moments    []float64 // scratch: of each pair of its terms
	slope      []float64 // scratch: of each limit
}

// slopes are the gradient and the curvature at some prices.
type slopes struct {
	classPrice []float64
	gradient   []float64 // by limit
	curvature  []float64 // of the negative function, by entry
}

func newSmooth(k *component) *smooth {
	if k.layout == nil {
		k.layout = newLayout(k)
	}
	s := &smooth{
		k: k, layout: k.layout, expected: make([]float64, len(k.classes)), covariance: make([]float64, k.layout.count),
		slope: make([]float64, len(k.slack)),
	}
	s.slopes, s.other = s.newSlopes(), s.newSlopes()
	return s
}

func (s *smooth) newSlopes() slopes {
	return slopes{make([]float64, len(s.k.classes)), make([]float64, len(s.k.slack)), make([]float64, s.entries)}
}

// swap takes the slopes at the other prices.
func (s *smooth) swap() { s.slopes, s.other = s.other, s.slopes }

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
	for i := range k.size() {
		m := k.competitor(i)
		value += s.soften(m)
		s.addMoments(m, s.pairs[i])
		k.steps -= stepsPerColumn * len(m.columns) * (1 + len(m.terms)*len(m.terms)/512)
	}
	for i, price := range prices {
		value -= float64(price * float64(k.slack[i]))
		s.gradient[i] = -float64(k.slack[i])
	}
	for i := range k.classes {
		for _, u := range k.classes[i].uses {
			s.gradient[u.limit] += float64(float64(u.amount) * s.expected[i])
		}
	}
	clear(s.curvature)
	for _, p := range s.parts {
		s.curvature[p.at] += float64(p.factor * s.covariance[p.pair])
	}
	for i := range s.curvature {
		s.curvature[i] /= s.temperature
	}
	return value
}

// soften returns the soft minimum of a competitor's columns, and weighs them: the weights add up to
// one.
func (s *smooth) soften(m *competitor) (value float64) {
	if len(s.weights) < len(m.columns) {
		s.weights = make([]float64, 2*len(m.columns))
	}
	least := math.Inf(1)
	for i := range m.columns {
		x := &m.columns[i]
		cost := float64(x.cost)
		for _, l := range x.loads {
			cost += float64(float64(l.amount) * s.classPrice[m.terms[l.term]])
		}
		s.weights[i] = cost
		least = min(least, cost)
	}
	total := 0.0
	for i := range m.columns {
		s.weights[i] = expOf((least - s.weights[i]) / s.temperature)
		total += s.weights[i]
	}
	for i := range m.columns {
		s.weights[i] /= total
	}
	return least - float64(s.temperature*logOf(total))
}

// addMoments adds the mean and the covariance of a competitor's terms at the weights.
func (s *smooth) addMoments(m *competitor, pairs []int32) {
	terms := len(m.terms)
	if len(s.mean) < terms {
		s.mean, s.moments = make([]float64, terms), make([]float64, terms*terms)
	}
	mean, moments := s.mean[:terms], s.moments[:terms*terms]
	clear(mean)
	clear(moments)
	single := true
	for i := range m.columns {
		w := s.weights[i]
		if w == 0 {
			continue
		}
		single = single && w == 1
		loads := m.columns[i].loads
		for a, x := range loads {
			share := float64(w * float64(x.amount))
			mean[x.term] += share
			row := moments[int(x.term)*terms:]
			for _, y := range loads[:a+1] {
				row[y.term] += float64(share * float64(y.amount))
			}
		}
	}
	for a, x := range mean {
		s.expected[m.terms[a]] += x
		if x == 0 || single {
			continue
		}
		own := pairs[a*(a+1)/2:]
		for b, y := range mean[:a+1] {
			if pair := own[b]; y != 0 && pair != none {
				s.covariance[pair] += moments[a*terms+b] - float64(x*y)
			}
		}
	}
}

// climb maximises the function from the prices, by at most so many projected Newton steps. A step
// moves no price by more than the reach, which a good step doubles and a bad one divides by four.
// It changes the prices, and returns the value.
func (s *smooth) climb(prices []float64, steps int) (value float64) {
	limits := len(prices)
	low, high := make([]float64, limits), make([]float64, limits)
	next, step := make([]float64, limits), make([]float64, limits)
	value = s.at(prices)
	s.reach = min(s.reach, 4*s.temperature)
	for ; steps > 0 && s.reach > s.temperature/1024 && s.k.steps > 0; steps-- {
		for i := range prices {
			reach := s.reach / s.largest[i]
			low[i] = max(0, prices[i]-reach)
			high[i] = min(float64(s.k.ceiling[i]), prices[i]+reach)
		}
		if !s.direction(prices, low, high, step) {
			break
		}
		for i := range next {
			next[i] = max(low[i], min(high[i], prices[i]+step[i]))
		}
		s.swap()
		found := s.at(next)
		if !(found > value) {
			s.swap()
			s.reach /= 4
			continue
		}
		gain := found - value
		value = found
		s.reach = min(2*s.reach, 16*s.temperature)
		copy(prices, next)
		if gain < float64(1e-6*math.Abs(value)) {
			break
		}
	}
	return value
}

// mostSweeps bounds the rounds of the coordinate ascent.
const mostSweeps = 12

// direction maximises the quadratic model of the function within the box, by coordinate ascent. It
// returns false if no price may move.
func (s *smooth) direction(prices, low, high, step []float64) (moves bool) {
	clear(step)
	copy(s.slope, s.gradient)
	for range mostSweeps {
		most := 0.0
		for i := range step {
			own := s.curvature[s.diagonal[i]]
			target := low[i] - prices[i]
			switch {
			case own > 0:
				target = max(target, min(high[i]-prices[i], step[i]+s.slope[i]/own))
			case s.slope[i] == 0:
				continue
			case s.slope[i] > 0:
				target = high[i] - prices[i]
			}
			change := target - step[i]
			if change == 0 {
				continue
			}
			moves = true
			step[i] = target
			most = max(most, float64(math.Abs(change)*s.largest[i]))
			for _, e := range s.rows[i] {
				s.slope[e.limit] -= float64(s.curvature[e.at] * change)
			}
		}
		if most < s.reach/1024 {
			break
		}
	}
	return moves
}

package solver

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// canonicalProblem is a problem after validation: its rows are usable, unique and sorted. It also
// collects the plan.
type canonicalProblem struct {
	options   []Option // in the order of the caller
	rows      []row    // sorted by model, role, variant
	models    []model  // sorted by model and role
	classes   []class  // see constraints.go
	unpooled  []int32  // the classes without a pool
	limits    []limit
	pools     []nodePool
	scarce    []*component // the components that were solved for contended accelerators
	horizon   time.Duration
	steps     int
	clearing  int // steps that nodesCanClear has left
	tolerance float64
}

// row is one option in numbers.
type row struct {
	option int32 // its index in options
	// class is the resource request of a replica; none if it uses no limited accelerators.
	class    int32
	model    int32 // the index of its model; none if it has no demand
	weighed  bool  // its capacity and price are known
	startup  int64 // seconds
	capacity float64
	price    float64
	domain   fleet.Range
	now      int
	held     int   // existing replicas whose nodes are known
	seat     int32 // its index in nodePool.rows
	replicas int   // of the plan
}

// none is the index for "no entry".
const none = -1

// model is one demand with the options that can serve it.
type model struct {
	*Demand
	rows   []row   // a part of canonicalProblem.rows
	first  int     // index of the first row, among all
	gap    float64 // the difference between the plan's cost and its lower bound, in currency units
	proven bool
}

func canonical(p *Problem) canonicalProblem {
	c := canonicalProblem{
		options: p.Options, horizon: wholeSeconds(p.Horizon), steps: p.Steps, clearing: allClearing, tolerance: p.Tolerance,
	}
	if c.horizon == 0 {
		c.horizon = DefaultHorizon
	}
	if c.steps <= 0 {
		c.steps = DefaultSteps * (1 + len(p.Demands)/2048)
	}
	if c.tolerance == 0 || math.IsNaN(c.tolerance) {
		c.tolerance = DefaultTolerance
	}
	c.setRows()
	c.join(usableDemands(p.Demands))
	return c
}

// setRows sorts the options. Most problems are sorted already.
func (c *canonicalProblem) setRows() {
	order := make([]int32, len(c.options))
	sorted := true
	for i := range order {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || compareOptions(&c.options[i-1], &c.options[i]) < 0)
	}
	if !sorted {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(compareOptions(&c.options[a], &c.options[b]), compareContent(&c.options[a], &c.options[b]))
		})
	}
	c.rows = make([]row, len(order))
	for i, at := range order {
		c.rows[i].read(&c.options[at], at)
	}
}

// join gives each model its rows. Both are sorted the same way.
func (c *canonicalProblem) join(demands []Demand) {
	c.models = make([]model, len(demands))
	at := 0
	for i := range c.models {
		m := &c.models[i]
		m.Demand = &demands[i]
		for at < len(c.rows) && c.compare(at, m) < 0 {
			c.rows[at].model = none
			at++
		}
		m.first = at
		for at < len(c.rows) && c.compare(at, m) == 0 {
			c.rows[at].model = int32(i)
			at++
		}
		m.rows = c.rows[m.first:at:at]
	}
	for ; at < len(c.rows); at++ {
		c.rows[at].model = none
	}
}

func (c *canonicalProblem) compare(at int, m *model) int {
	o := &c.options[c.rows[at].option]
	return cmp.Or(o.Model.Compare(m.Model), cmp.Compare(o.Role, m.Role))
}

// price is the cost of a row's replicas over the horizon.
func (c *canonicalProblem) price(r *row) float64 {
	hours := float64(float64(r.replicas)*c.horizon.Hours()) + float64(float64(max(0, r.replicas-r.now))*(float64(r.startup)/3600))
	return float64(r.price * hours)
}

// unserved is the share of the model's demand that the plan does not serve.
func (m *model) unserved() float64 {
	if m.Amount == 0 {
		return 0
	}
	left := whole
	for i := range m.rows {
		left = remaining(left, parts(m.rows[i].capacity, m.Amount), int64(m.rows[i].replicas))
	}
	if left <= tolerance {
		return 0
	}
	return float64(left) / float64(whole)
}

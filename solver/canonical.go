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

// canonicalProblem is a problem whose rows are usable, unique and in an order of their own, with the plan as it emerges.
type canonicalProblem struct {
	options []Option // as they were given
	rows    []row    // sorted by model, role, variant
	// byVariant are the rows by their variant; nil where that is their order anyway.
	byVariant []int32
	models    []model // sorted by model and role
	classes   []class // see constraints.go
	limits    []limit
	pools     []nodePool
	scarce    []*component // what was solved together
	horizon   time.Duration
	steps     int
	tolerance float64
}

// row is one option in numbers.
type row struct {
	option   int32 // its place among the options as they were given
	class    int32 // what its replicas take; none where that is nothing, or nothing scarce
	model    int32 // that it serves; none where there is none
	weighed  bool  // its capacity and price are known
	startup  int64 // seconds
	capacity float64
	price    float64
	domain   fleet.Range
	now      int
	held     int   // replicas that stand on nodes
	seat     int32 // its place among the rows of its pool
	cut      bool  // its range ends where the accelerators do
	replicas int   // the plan
}

// none is no place in a table.
const none = -1

// model is one demand with the options that can serve it.
type model struct {
	*Demand
	rows     []row   // of the problem
	first    int     // of the rows, among all
	priority int     // its rank among the demands that compete
	gap      float64 // by how much the plan's cost may exceed the least, in money
	proven   bool
}

func canonical(p *Problem) canonicalProblem {
	c := canonicalProblem{options: p.Options, horizon: wholeSeconds(p.Horizon), steps: p.Steps, tolerance: p.Tolerance}
	if c.horizon == 0 {
		c.horizon = DefaultHorizon
	}
	if c.steps <= 0 {
		c.steps = DefaultSteps
	}
	if c.tolerance == 0 || math.IsNaN(c.tolerance) {
		c.tolerance = DefaultTolerance
	}
	c.setRows()
	c.join(usableDemands(p.Demands))
	return c
}

// setRows brings the options into order, each variant once. Most problems come in order.
func (c *canonicalProblem) setRows() {
	order := c.orderByVariant()
	sameModel := func(a, b *Option) int { return cmp.Or(a.Model.Compare(b.Model), cmp.Compare(a.Role, b.Role)) }
	sorted := true
	for i := 1; i < len(order) && sorted; i++ {
		sorted = sameModel(&c.options[order[i-1]], &c.options[order[i]]) <= 0
	}
	places := order
	if !sorted {
		places = slices.Clone(order)
		slices.SortStableFunc(places, func(a, b int32) int { return sameModel(&c.options[a], &c.options[b]) })
	}
	c.rows = make([]row, len(places))
	for i, place := range places {
		c.rows[i] = usableRow(&c.options[place], place)
	}
	if !sorted {
		at := make([]int32, len(c.options))
		for i, place := range places {
			at[place] = int32(i)
		}
		for i, place := range order {
			order[i] = at[place]
		}
		c.byVariant = order
	}
}

// orderByVariant returns the places of the options that count, sorted by variant.
func (c *canonicalProblem) orderByVariant() []int32 {
	order := make([]int32, len(c.options))
	sorted := true
	for i := range order {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || c.options[i-1].Variant.Compare(c.options[i].Variant) < 0)
	}
	if sorted {
		return order
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(c.options[a].Variant.Compare(c.options[b].Variant), compareContent(&c.options[a], &c.options[b]))
	})
	return slices.CompactFunc(order, func(a, b int32) bool { return c.options[a].Variant == c.options[b].Variant })
}

// join gives each model its rows: both are sorted alike.
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

// price is what the replicas of a row cost over the horizon.
func (c *canonicalProblem) price(r *row) float64 {
	hours := float64(float64(r.replicas)*c.horizon.Hours()) + float64(float64(max(0, r.replicas-r.now))*(float64(r.startup)/3600))
	return float64(r.price * hours)
}

// unserved is the share of the model's demand that the plan does not carry.
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

// usablePenalty returns the pieces that count, the cheapest first, for the whole demand; nil where one of them cannot be weighed.
func usablePenalty(pieces []Piece) []Piece {
	if len(pieces) == 0 {
		return nil
	}
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

func compareContent(a, b *Option) int {
	return cmp.Or(
		a.Model.Compare(b.Model),
		cmp.Compare(a.Role, b.Role),
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
	)
}

func usableRow(o *Option, place int32) row {
	r := row{
		option: place, class: none, weighed: true, startup: int64(wholeSeconds(o.Startup) / time.Second), capacity: o.Capacity, price: o.Price,
		domain: usableRange(o.Range), now: countOf(o.Now),
	}
	if !usable(o.Capacity, math.MaxFloat64) {
		r.capacity, r.weighed = 0, false
	}
	if !usable(o.Price, maxPrice) {
		r.price, r.weighed = 0, false
	}
	if !r.weighed {
		r.fix()
	}
	return r
}

func usableRange(r fleet.Range) fleet.Range {
	least, idle := countOf(r.Min), countOf(r.Idle)
	clean := fleet.Range{Min: least, Max: max(least, countOf(r.Max))}
	if r.AllowsIdle && idle < least {
		clean.Idle, clean.AllowsIdle = idle, true
	}
	return clean
}

// fix has the row stay where it stands.
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

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
	options  []Option // sorted by variant
	replicas []int    // of each option
	models   []model  // sorted by model
	horizon  time.Duration
	steps    int
}

// model is one demand with the options that can serve it.
type model struct {
	Demand
	rows   []int   // of the options, ascending
	gap    float64 // by how much the plan's cost may exceed the least
	proven bool
}

func canonical(p Problem) canonicalProblem {
	c := canonicalProblem{
		options: usableOptions(p.Options),
		models:  usableDemands(p.Demands),
		horizon: wholeSeconds(p.Horizon),
		steps:   p.Steps,
	}
	if c.horizon == 0 {
		c.horizon = DefaultHorizon
	}
	if c.steps <= 0 {
		c.steps = DefaultSteps
	}
	c.replicas = make([]int, len(c.options))
	for i := range c.options {
		c.replicas[i] = c.options[i].Range.Floor()
	}
	c.join()
	return c
}

// join gives each model its options.
func (c *canonicalProblem) join() {
	type served struct {
		model fleet.ModelID
		role  fleet.Role
	}
	index := make(map[served]int, len(c.models))
	for i := range c.models {
		index[served{c.models[i].Model, c.models[i].Role}] = i
	}
	owner := make([]int, len(c.options))
	sizes := make([]int, len(c.models))
	for row := range c.options {
		i, found := index[served{c.options[row].Model, c.options[row].Role}]
		if !found {
			owner[row] = -1
			continue
		}
		owner[row] = i
		sizes[i]++
	}
	rows := make([]int, len(c.options))
	for i, size := range sizes {
		c.models[i].rows, rows = rows[:0:size], rows[size:]
	}
	for row, i := range owner {
		if i >= 0 {
			c.models[i].rows = append(c.models[i].rows, row)
		}
	}
}

// price is what the replicas of an option cost over the horizon.
func (c *canonicalProblem) price(row int) float64 {
	o, n := &c.options[row], c.replicas[row]
	hours := float64(float64(n)*c.horizon.Hours()) + float64(float64(max(0, n-o.Now))*o.Startup.Hours())
	return float64(o.Price * hours)
}

// unserved is the part of the model's demand that the plan does not carry.
func (c *canonicalProblem) unserved(m *model) float64 {
	if m.Amount == 0 {
		return 0
	}
	left := whole
	for _, row := range m.rows {
		left = remaining(left, parts(c.options[row].Capacity, m.Amount), c.replicas[row])
	}
	if left <= tolerance {
		return 0
	}
	return m.Amount * (float64(left) / float64(whole))
}

func usableDemands(demands []Demand) []model {
	models := make([]model, len(demands))
	for i, d := range demands {
		if !usable(d.Penalty, maxPrice) {
			d.Penalty = 0
		}
		models[i].Demand = d
	}
	slices.SortFunc(models, func(a, b model) int {
		if order := cmp.Or(a.Model.Compare(b.Model), cmp.Compare(a.Role, b.Role)); order != 0 {
			return order
		}
		// Unknown first, then the largest; no penalty is the highest one.
		return cmp.Or(
			-cmp.Compare(unknown(a.Amount), unknown(b.Amount)),
			-cmp.Compare(a.Amount, b.Amount),
			cmp.Compare(a.Penalty, b.Penalty),
		)
	})
	return slices.CompactFunc(models, func(a, b model) bool { return a.Model == b.Model && a.Role == b.Role })
}

func usableOptions(rows []Option) []Option {
	options := make([]Option, len(rows))
	for i := range rows {
		options[i] = usableOption(rows[i])
	}
	slices.SortFunc(options, func(a, b Option) int {
		if order := a.Variant.Compare(b.Variant); order != 0 {
			return order
		}
		return compareContent(a, b)
	})
	return slices.CompactFunc(options, func(a, b Option) bool { return a.Variant == b.Variant })
}

func compareContent(a, b Option) int {
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
	)
}

func usableOption(o Option) Option {
	o.Now = countOf(o.Now)
	o.Startup = wholeSeconds(o.Startup)
	o.Range = usableRange(o.Range)
	capacity, price := usable(o.Capacity, math.MaxFloat64), usable(o.Price, maxPrice)
	if !capacity {
		o.Capacity = 0
	}
	if !price {
		o.Price = 0
	}
	if !capacity || !price {
		o.Range = fixed(o)
	}
	return o
}

func usableRange(r fleet.Range) fleet.Range {
	least, idle := countOf(r.Min), countOf(r.Idle)
	clean := fleet.Range{Min: least, Max: max(least, countOf(r.Max))}
	if r.AllowsIdle && idle < least {
		clean.Idle, clean.AllowsIdle = idle, true
	}
	return clean
}

// fixed is the range of an option that stays where it stands.
func fixed(o Option) fleet.Range {
	n := o.Range.Clamp(o.Now)
	return fleet.Range{Min: n, Max: n}
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

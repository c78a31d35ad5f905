package evaluation

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// minute is the length of the windows of a table, in seconds.
	minute = 60.0
	// around is the part of the load before and after a window that is simulated with it.
	around = 30.0
	// leastShare is the share of requests within the objective below which fewer replicas are not
	// simulated: the share is taken to fall in proportion to them, which is optimistic.
	leastShare = 0.5
	// bisections is how often the value of a request is halved: to one part in 10^12.
	bisections = 40
)

// table has, for each window and number of replicas, the requests that are served within the
// objective.
type table struct {
	least, most int // replicas
	within      [][]float64
	lengths     []float64 // of windows, in seconds
	requests    int
	price       float64 // of a replica for a second
	startup     float64 // mean, in seconds
	hours       float64
}

// newTable simulates the windows of a case on one variant, with the load around each.
func newTable(c Case, choice Choice) *table { return newTableBefore(c, choice, around) }

// newTableBefore simulates the windows with the load before each, and with so many seconds of the
// load after it.
func newTableBefore(c Case, choice Choice, after float64) *table {
	id := choice.Variants[0]
	spec, limits := specOf(c.Setup, id), c.Setup.variant(id).Range
	t := &table{
		least: max(0, limits.Min), most: max(1, limits.Min), requests: len(c.Requests),
		price: spec.Cost / 3600, startup: spec.Startup, hours: c.Until / 3600,
	}
	for begin := 0.0; begin < c.Until; begin += minute {
		end := min(begin+minute, c.Until)
		w := excerpt{c: c, spec: spec, requests: between(c.Requests, begin-around, end+after), begin: begin, end: end}
		row := w.row(limits.Max, replicasFor(c, choice, float64(len(between(c.Requests, begin, end)))/minute))
		t.within = append(t.within, row)
		t.lengths = append(t.lengths, end-begin)
		t.most = max(t.most, len(row)-1)
	}
	return t
}

// between returns the requests that arrive in a time.
func between(requests []simulation.Request, from, until float64) []simulation.Request {
	first := sort.Search(len(requests), func(i int) bool { return requests[i].Arrival >= from })
	last := sort.Search(len(requests), func(i int) bool { return requests[i].Arrival >= until })
	return requests[first:last]
}

// excerpt is a window of a case with the load around it.
type excerpt struct {
	c          Case
	spec       simulation.VariantSpec
	requests   []simulation.Request
	begin, end float64
}

// row returns the requests within the objective by number of replicas, from none to the number from
// which on more replicas seem to change nothing. It begins at an estimate.
func (w excerpt) row(most int, estimate float64) []float64 {
	all := float64(len(between(w.requests, w.begin, w.end)))
	if all == 0 {
		return []float64{0}
	}
	found := map[int]float64{}
	from := min(max(1, int(math.Ceil(estimate))), most)
	n := from
	for ; n <= most; n++ {
		// from a number on more do not help: prompts may be too long by themselves
		found[n] = w.within(n)
		if found[n] == all || n >= from+3 && found[n] == found[n-1] && found[n] == found[n-2] {
			break
		}
	}
	highest := min(n, most)
	for n = from - 1; n >= 1 && found[n+1] >= leastShare*all; n-- {
		found[n] = w.within(n)
	}
	row := make([]float64, highest+1)
	for n := highest; n >= 1; n-- {
		value, known := found[n]
		if !known {
			value = row[n+1] * float64(n) / float64(n+1)
		}
		row[n] = value
	}
	for n := 1; n <= highest; n++ {
		row[n] = max(row[n], row[n-1]) // noise
	}
	return row[:1+slices.Index(row, row[highest])]
}

// within simulates a number of replicas.
func (w excerpt) within(replicas int) float64 {
	spec := w.spec
	spec.Initial = replicas
	setup := w.c.Setup.Fleet
	setup.Seed, setup.Variants, setup.Nodes = w.c.Seed, []simulation.VariantSpec{spec}, nil
	f, err := simulation.NewFleet(setup)
	if err == nil {
		err = f.Offer(w.requests)
	}
	if err != nil {
		panic(fmt.Sprintf("evaluation: a case that other policies run on is invalid: %v", err))
	}
	limit := w.limit(w.c.Setup.Objective())
	f.Advance(limit)
	within := 0
	for _, o := range f.Outcomes() {
		if o.Arrival >= w.begin && o.Arrival < w.end && o.Meets(w.c.Setup.Objective()) {
			within++
		}
	}
	return float64(within)
}

// limit returns the time by which each request of a window has ended if it is within the objective.
func (w excerpt) limit(objective fleet.Objective) float64 {
	longest := 0
	for _, r := range between(w.requests, w.begin, w.end) {
		longest = max(longest, r.Output)
	}
	if objective.TTFT == 0 || objective.ITL == 0 {
		return w.end + maxDrain
	}
	return w.end + objective.TTFT.Seconds() + float64(longest)*objective.ITL.Seconds()
}

// scheduleFor returns the replicas by window of the cheapest schedule that reaches an attainment,
// and the cost per hour at exactly that attainment, interpolated to a schedule below it.
func (t *table) scheduleFor(attainment float64) ([]int, float64, error) {
	needed := attainment * float64(t.requests)
	value := t.price * 3600 // of a served request
	enough, got := t.cheapest(value)
	for i := 0; got < needed; i++ {
		if i == bisections {
			return nil, 0, fmt.Errorf("no number of replicas serves %.2f %% within the objective", 100*attainment)
		}
		value *= 4
		enough, got = t.cheapest(value)
	}
	low, high := 0.0, value
	few, below := t.cheapest(low)
	for range bisections {
		value = (low + high) / 2
		plan, within := t.cheapest(value)
		if within >= needed {
			high, enough, got = value, plan, within
		} else {
			low, few, below = value, plan, within
		}
	}
	cost := t.cost(enough)
	if got > needed && got > below {
		cost -= (cost - t.cost(few)) * (got - needed) / (got - below)
	}
	return enough, cost, nil
}

// cheapest returns the schedule with the lowest cost less the value of the requests that are served
// within the objective, and their number. Replicas of the beginning cost no start-up.
func (t *table) cheapest(value float64) (plan []int, within float64) {
	levels := t.most - t.least + 1
	costs := make([]float64, levels) // of the best schedule that ends at a level
	from := make([][]int, len(t.within))
	for i := range t.within {
		from[i] = make([]int, levels)
		if i > 0 {
			costs = t.transitions(costs, from[i])
		}
		for level := range costs {
			n := t.least + level
			costs[level] += t.price*t.lengths[i]*float64(n) - value*t.served(i, n)
		}
	}
	level := 0
	for l := range costs {
		if costs[l] < costs[level] {
			level = l
		}
	}
	plan = make([]int, len(t.within))
	for i := len(plan) - 1; i >= 0; i-- {
		plan[i] = t.least + level
		within += t.served(i, plan[i])
		level = from[i][level]
	}
	return plan, within
}

// transitions returns the lowest costs after a change of level, and the level before it: up costs
// the start-up of each replica, down nothing.
func (t *table) transitions(costs []float64, from []int) []float64 {
	next := slices.Clone(costs)
	for level := range next {
		from[level] = level
	}
	for level := len(next) - 2; level >= 0; level-- {
		if next[level+1] < next[level] {
			next[level], from[level] = next[level+1], from[level+1]
		}
	}
	up := t.price * t.startup
	for level := 1; level < len(next); level++ {
		if cost := next[level-1] + up; cost < next[level] {
			next[level], from[level] = cost, from[level-1]
		}
	}
	return next
}

// highest returns the highest attainment of any schedule.
func (t *table) highest() float64 {
	within := 0.0
	for _, row := range t.within {
		within += row[len(row)-1]
	}
	return within / float64(max(1, t.requests))
}

// served returns the requests of a window that a number of replicas serves within the objective.
func (t *table) served(i, n int) float64 {
	row := t.within[i]
	return row[min(n, len(row)-1)]
}

// cost returns the cost per hour of a schedule.
func (t *table) cost(plan []int) float64 {
	sum := 0.0
	for i, n := range plan {
		sum += t.price * t.lengths[i] * float64(n)
		if i > 0 && n > plan[i-1] {
			sum += t.price * t.startup * float64(n-plan[i-1])
		}
	}
	return sum / t.hours
}

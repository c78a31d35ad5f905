package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// contest bounds the size of a random problem whose demands compete.
type contest struct {
	models int
	plans  int // at most, by the product of the ranges
}

// The reference can enumerate twinsContest in a short time. It can only evaluate plans of widest.
var (
	twinsContest = contest{models: 4, plans: 8000}
	widest       = contest{models: 9, plans: 1 << 50}
)

// contestMaker makes one random problem. Its numbers are coarse, so that ties are frequent, and
// sums of them are exact.
type contestMaker struct {
	*rand.Rand
	Problem
	sizes []int
	grain float64
	plans float64 // budget of plans for the options that are left
	kinds int
}

// competing makes a problem whose demands compete for accelerators, in most cases.
func competing(random *rand.Rand, c contest) Problem {
	m := &contestMaker{Rand: random, sizes: []int{1, 1, 1, 2, 2, 4, 8}, plans: float64(c.plans)}
	if m.IntN(4) == 0 {
		m.sizes = []int{1, 2, 3, 4, 5, 6}
	}
	m.grain = []float64{1, 0.25, 0.0625}[m.IntN(3)]
	m.Horizon = []time.Duration{time.Hour, 30 * time.Minute, 15 * time.Minute}[m.IntN(3)]
	m.makePools()
	variants := make([]int, 1+m.IntN(c.models))
	left := 0
	for i := range variants {
		variants[i] = 1 + m.IntN(3)
		left += variants[i]
	}
	for i, n := range variants {
		id := served{model: fleet.ModelID{Namespace: "ns", Name: fmt.Sprint("model-", i)}}
		// Another role of the previous model.
		if i > 0 && m.Demands[i-1].Role == "" && m.IntN(8) == 0 {
			id = served{m.Demands[i-1].Model, fleet.RoleDecode}
		}
		total := 0.0
		for range n {
			o := m.option(id, left)
			total += o.Capacity * float64(o.Range.Max)
			left--
		}
		m.Demands = append(m.Demands, m.demand(id, total, n))
	}
	m.makeQuotas()
	if m.IntN(3) == 0 {
		m.makeHoldings()
	}
	return m.Problem
}

type served struct {
	model fleet.ModelID
	role  fleet.Role
}

func (m *contestMaker) oneOf(of ...int) int { return of[m.IntN(len(of))] }

func (m *contestMaker) makePools() {
	for i := range 1 + m.IntN(3) {
		pool := Pool{Accelerator: fleet.Accelerator(rune('A' + i))}
		for range 1 + m.IntN(4) {
			pool.Nodes = append(pool.Nodes, Node{Free: m.IntN(9)})
		}
		if m.IntN(8) == 0 {
			pool.Elastic, pool.Limit = true, m.IntN(13)
		}
		m.Pools = append(m.Pools, pool)
	}
	m.kinds = len(m.Pools)
	if m.kinds > 1 && m.IntN(6) == 0 { // a type without a row is unlimited
		m.Pools = m.Pools[1:]
	}
}

// option draws an option so that the product of the ranges stays within the budget, with left
// options to come, itself included.
func (m *contestMaker) option(id served, left int) Option {
	width := 1 + m.IntN(int(min(8, m.plans, 1.6*math.Pow(m.plans, 1/float64(left)))))
	o := Option{
		Variant:     fleet.VariantID{Namespace: []string{"ns", "ns", "other"}[m.IntN(3)], Name: string(rune('a' + len(m.Options)))},
		Model:       id.model,
		Role:        id.role,
		Accelerator: fleet.Accelerator(rune('A' + m.IntN(m.kinds))),
		GPUs:        m.oneOf(m.sizes...),
		Startup:     time.Duration(m.IntN(5)) * 225 * time.Second, // a sixteenth of an hour
	}
	if m.IntN(10) == 0 {
		o.Nodes = 1 + m.IntN(3)
	}
	if m.IntN(30) == 0 {
		o.GPUs = 0
	}
	all := max(1, o.GPUs*shares(o))
	o.Capacity = float64(all*m.oneOf(1, 1, 2, 2, 3)+m.IntN(2)) * m.grain
	o.Price = float64(all*m.oneOf(1, 2, 3, 4)+m.IntN(2)) * 0.25
	if m.IntN(20) == 0 {
		o.Capacity = 0
	}
	switch {
	case width >= 2 && m.IntN(6) == 0: // an idle number below a minimum
		o.Range.Min = 2 + m.IntN(2)
		o.Range.Max = o.Range.Min + width - 2
		o.Range.AllowsIdle, o.Range.Idle = true, m.IntN(2)
	default:
		o.Range.Min = max(0, m.IntN(30)-27)
		o.Range.Max = o.Range.Min + width - 1
	}
	o.Now = m.IntN(o.Range.Max + 2)
	if m.IntN(16) == 0 { // fixed, as for a held variant
		o.Now = m.oneOf(0, 1, 1, 2)
		o.Range, width = fleet.Range{Min: o.Now, Max: o.Now}, 1
	}
	m.plans /= float64(width)
	m.Options = append(m.Options, o)
	return o
}

// demand divides by its amount without a remainder.
func (m *contestMaker) demand(id served, total float64, variants int) Demand {
	d := Demand{Model: id.model, Role: id.role}
	if m.IntN(20) > 0 && total > 0 {
		d.Amount = math.Exp2(math.Ceil(math.Log2(total * (0.2 + m.Float64()))))
	}
	price := 0.0 // of all that can serve it
	for _, o := range m.Options[len(m.Options)-variants:] {
		price += o.Price * float64(o.Range.Max)
	}
	if price == 0 {
		price = 1
	}
	price *= []float64{1, 2, 4, 4, 8, 8, 16, 32}[m.IntN(8)]
	for range 1 + m.IntN(5) {
		d.Penalty = append(d.Penalty, Piece{Share: float64(1+m.IntN(3)) * 0.125, Price: price})
		price *= []float64{1, 1.5, 2, 4}[m.IntN(4)]
	}
	return d
}

func (m *contestMaker) makeQuotas() {
	for _, q := range []Quota{{Namespace: "ns"}, {Namespace: "other", Accelerator: "A"}, {Namespace: "ns", Accelerator: "B"}} {
		if q.GPUs = 2 + m.IntN(12); m.IntN(8) == 0 {
			m.Quotas = append(m.Quotas, q)
		}
	}
}

// makeHoldings puts existing replicas on nodes with enough free accelerators, and some on a node
// that is gone. Some nodes have fewer accelerators than are allocated there, as if they had been
// cordoned.
func (m *contestMaker) makeHoldings() {
	for _, pool := range m.Pools {
		room := make([]int, len(pool.Nodes))
		for i, n := range pool.Nodes {
			room[i] = n.Free
		}
		for i := range m.Options {
			if o := &m.Options[i]; o.Accelerator == pool.Accelerator && o.GPUs > 0 {
				for range min(o.Now, 4) {
					m.stand(o, room)
				}
			}
		}
		for i := range pool.Nodes {
			if m.IntN(8) == 0 {
				pool.Nodes[i].Free = max(0, pool.Nodes[i].Free-1-m.IntN(3))
			}
		}
	}
}

func (m *contestMaker) stand(o *Option, room []int) {
	left, nodes := append([]int(nil), room...), []int32(nil)
	for range shares(*o) {
		node := m.IntN(len(left))
		if left[node] < o.GPUs {
			return // it is Pending
		}
		left[node] -= o.GPUs
		nodes = append(nodes, int32(node))
	}
	if m.IntN(15) == 0 {
		nodes[0] = int32(len(room)) // it is gone
	} else {
		copy(room, left)
	}
	o.Held = append(o.Held, nodes)
}

// dividing reports whether no replica is pinned to a node and the sizes of each accelerator type
// divide each other: then the solver's limits are exact.
func dividing(p Problem) bool {
	for _, rows := range newPoolsTwin(p).rows {
		if len(rows) > 0 {
			return false
		}
	}
	for _, a := range p.Options {
		for _, b := range p.Options {
			if a.Accelerator == b.Accelerator && a.GPUs > 0 && b.GPUs > a.GPUs && b.GPUs%a.GPUs > 0 {
				return false
			}
		}
	}
	return true
}

func TestCompetingProblemsAreVaried(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 1))
	seen := map[string]int{}
	plans := 0
	const problems = 1000
	for range problems {
		p := competing(random, twinsContest)
		twin := newPoolsTwin(p)
		best := twin.tryAll()
		plans += best.plans
		if best.plans > twinsContest.plans {
			t.Fatalf("%d plans: %+v", best.plans, p)
		}
		for what, is := range map[string]bool{
			"coupled":           best.fits && best.cost > best.ample,
			"infeasible":        !best.fits,
			"dividing":          dividing(p),
			"several models":    len(p.Demands) > 1,
			"held on nodes":     anyHeld(p),
			"quotas":            len(p.Quotas) > 0,
			"an elastic pool":   slices.ContainsFunc(p.Pools, func(l Pool) bool { return l.Elastic }),
			"an over-full node": anyHeld(p) && !p.Pools[0].Elastic && overfull(twin),
			"a group":           slices.ContainsFunc(p.Options, func(o Option) bool { return o.Nodes > 1 }),
			"idle":              slices.ContainsFunc(p.Options, func(o Option) bool { return o.Range.AllowsIdle }),
			"a held variant":    slices.ContainsFunc(p.Options, func(o Option) bool { return o.Range.Min == o.Range.Max }),
			"roles":             slices.ContainsFunc(p.Demands, func(d Demand) bool { return d.Role != "" }),
			"an unlimited type": slices.ContainsFunc(p.Options, func(o Option) bool {
				return !slices.ContainsFunc(p.Pools, func(l Pool) bool { return l.Accelerator == o.Accelerator })
			}),
			"no load":       slices.ContainsFunc(p.Demands, func(d Demand) bool { return d.Amount == 0 }),
			"zero capacity": slices.ContainsFunc(p.Options, func(o Option) bool { return o.Capacity == 0 }),
		} {
			if is {
				seen[what]++
			}
		}
	}
	t.Logf("%d plans a problem; %v", plans/problems, seen)
	if seen["coupled"] < problems/2 || seen["infeasible"] > problems/4 || seen["dividing"] < problems/4 {
		t.Errorf("too few problems that test something: %v", seen)
	}
	for what, n := range seen {
		if n < problems/100 {
			t.Errorf("only %d problems with %s", n, what)
		}
	}
	if len(seen) < 15 {
		t.Errorf("only these were seen: %v", seen)
	}
}

func overfull(twin *poolsTwin) bool {
	for _, pool := range twin.Pools {
		for i, n := range pool.Nodes {
			held := 0
			for j, rows := range twin.rows {
				for _, node := range slices.Concat(rows...) {
					if int(node) == i && twin.Options[j].Accelerator == pool.Accelerator {
						held += twin.Options[j].GPUs
					}
				}
			}
			if held > n.Free {
				return true
			}
		}
	}
	return false
}

package solver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// milpProgram is a problem as a mixed integer program to be minimised, for solvers that share
// nothing with this package. Its first columns are the replicas of the problem's options, in the
// same order.
type milpProgram struct {
	columns []milpColumn
	rows    []milpRow
}

type milpColumn struct {
	cost, low, high float64 // high below zero: without a limit
	whole           bool
}

// milpRow says that the sum of its terms is at least, at most or exactly as large as the right
// side.
type milpRow struct {
	terms []milpTerm
	sense string // ">=", "<=" or "="
	right float64
}

type milpTerm struct {
	factor float64
	column int
}

// milpSeats selects how the program places replicas on nodes.
type milpSeats int

const (
	// byNode has a variable for each option and node. Any sizes, groups and holdings.
	byNode milpSeats = iota
	// byLevel has one for each size and each number of free accelerators. It needs sizes that
	// divide each other. Existing replicas may be moved.
	byLevel
	// bySum has none: one row for each size, which is the sum of those by level. Other solvers find
	// it the easiest. A test checks that it means the same.
	bySum
)

// milpOf writes the whole objective and all constraints by the definition of Problem. The rows have
// to be valid: no row twice, amounts, prices and capacities that are numbers, a convex penalty for
// each demand, and holdings on nodes of their pool.
func milpOf(p Problem, seats milpSeats) *milpProgram {
	g := &milpProgram{}
	hours := p.Horizon.Hours()
	if p.Horizon <= 0 {
		hours = DefaultHorizon.Hours()
	}
	for _, o := range p.Options {
		g.column(milpColumn{cost: o.Price * hours, high: -1, whole: true})
	}
	for i, o := range p.Options {
		g.bound(i, o)
		if o.Startup > 0 { // started >= n - now
			started := g.column(milpColumn{cost: o.Price * o.Startup.Hours(), high: -1})
			g.row(">=", -float64(o.Now), milpTerm{1, started}, milpTerm{-1, i})
		}
	}
	for _, d := range p.Demands {
		g.cover(p, d, hours)
	}
	for _, q := range p.Quotas {
		g.limit(p, q.GPUs, func(o Option) bool {
			return o.Variant.Namespace == q.Namespace && (q.Accelerator == "" || q.Accelerator == o.Accelerator)
		})
	}
	for _, pool := range p.Pools {
		switch {
		case pool.Elastic && pool.Limit > 0:
			g.limit(p, pool.Limit, func(o Option) bool { return o.Accelerator == pool.Accelerator })
		case !pool.Elastic && seats == byNode:
			g.seatByNode(p, pool)
		case !pool.Elastic && seats == byLevel:
			g.seatByLevel(p, pool)
		case !pool.Elastic:
			g.seatBySum(p, pool)
		}
	}
	return g
}

func (g *milpProgram) column(c milpColumn) int {
	g.columns = append(g.columns, c)
	return len(g.columns) - 1
}

// row adds a row. A column that is named several times, as the node of two shares of a replica is,
// gets one term: LP readers reject more.
func (g *milpProgram) row(sense string, right float64, terms ...milpTerm) {
	merged := make([]milpTerm, 0, len(terms))
	at := make(map[int]int, len(terms))
	for _, t := range terms {
		if t.factor == 0 {
			continue
		}
		if i, found := at[t.column]; found {
			merged[i].factor += t.factor
			continue
		}
		at[t.column] = len(merged)
		merged = append(merged, t)
	}
	g.rows = append(g.rows, milpRow{merged, sense, right})
}

// bound limits the replicas of an option to its range. If it may be idle, a switch selects between
// the idle number and the range.
func (g *milpProgram) bound(i int, o Option) {
	least, most := float64(o.Range.Min), float64(max(o.Range.Min, o.Range.Max))
	g.columns[i].low, g.columns[i].high = least, most
	if !o.Range.AllowsIdle || o.Range.Idle >= o.Range.Min {
		return
	}
	idle := float64(o.Range.Idle)
	g.columns[i].low = idle
	awake := g.column(milpColumn{high: 1, whole: true})
	g.row(">=", idle, milpTerm{1, i}, milpTerm{idle - least, awake})
	g.row("<=", idle, milpTerm{1, i}, milpTerm{idle - most, awake})
}

// cover requires that the demand is met, except the shares that the pieces of the penalty pay for.
// The unit of the row is the demand.
func (g *milpProgram) cover(p Problem, d Demand, hours float64) {
	if d.Amount == 0 {
		return
	}
	if len(d.Penalty) == 0 {
		panic("a program needs the price of unserved demand")
	}
	var terms []milpTerm
	for i, o := range p.Options {
		if o.Model == d.Model && o.Role == d.Role {
			terms = append(terms, milpTerm{o.Capacity / d.Amount, i})
		}
	}
	for j, piece := range d.Penalty {
		c := milpColumn{cost: piece.Price * hours, high: piece.Share}
		if j == len(d.Penalty)-1 {
			c.high = -1
		}
		terms = append(terms, milpTerm{1, g.column(c)})
	}
	g.row(">=", 1, terms...)
}

// limit bounds the accelerators of some options together.
func (g *milpProgram) limit(p Problem, gpus int, counts func(Option) bool) {
	var terms []milpTerm
	for i, o := range p.Options {
		if counts(o) && o.GPUs > 0 {
			terms = append(terms, milpTerm{float64(o.GPUs * max(1, o.Nodes)), i})
		}
	}
	if len(terms) > 0 {
		g.row("<=", float64(gpus), terms...)
	}
}

// fixed is the program with the numbers of a plan: its optimum is the cost of the plan, if the plan
// is feasible.
func (g *milpProgram) fixed(counts []int) *milpProgram {
	columns := slices.Clone(g.columns)
	for i, n := range counts {
		columns[i].low, columns[i].high = float64(n), float64(n)
	}
	return &milpProgram{columns: columns, rows: g.rows}
}

// text is the program in the CPLEX LP format.
func (g *milpProgram) text() string {
	var b strings.Builder
	b.WriteString("Minimize\n obj:")
	objective := make([]milpTerm, 0, len(g.columns))
	for i, c := range g.columns {
		if c.cost != 0 {
			objective = append(objective, milpTerm{c.cost, i})
		}
	}
	writeTerms(&b, objective)
	b.WriteString("\nSubject To\n")
	for i, r := range g.rows {
		fmt.Fprintf(&b, " r%d:", i)
		writeTerms(&b, r.terms)
		fmt.Fprintf(&b, " %s %s\n", r.sense, milpNumber(r.right))
	}
	b.WriteString("Bounds\n")
	for i, c := range g.columns {
		switch {
		case c.high < 0:
			fmt.Fprintf(&b, " x%d >= %s\n", i, milpNumber(c.low))
		case c.low == c.high:
			fmt.Fprintf(&b, " x%d = %s\n", i, milpNumber(c.low))
		default:
			fmt.Fprintf(&b, " %s <= x%d <= %s\n", milpNumber(c.low), i, milpNumber(c.high))
		}
	}
	b.WriteString("Generals\n")
	for i, c := range g.columns {
		if c.whole {
			fmt.Fprintf(&b, " x%d\n", i)
		}
	}
	b.WriteString("End\n")
	return b.String()
}

// writeTerms breaks long lines, which readers truncate.
func writeTerms(b *strings.Builder, terms []milpTerm) {
	for i, t := range terms {
		if i > 0 && i%8 == 0 {
			b.WriteString("\n ")
		}
		sign := "+"
		if t.factor < 0 {
			sign = "-"
		}
		fmt.Fprintf(b, " %s %s x%d", sign, strings.TrimPrefix(milpNumber(t.factor), "-"), t.column)
	}
}

func milpNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

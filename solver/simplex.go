package solver

import (
	"math"
	"slices"
)

// simplex is a linear program with bounded variables, in the dense tableau of the dual simplex
// method (Lemke, 1954): basic variables = values − table × (nonbasic variables − their bounds). Of
// its variables, the first are the columns, and one for each row is its slack.
type simplex struct {
	program  *program
	rows     int
	columns  int       // also the number of nonbasic variables
	table    []float64 // rows × columns
	reduced  []float64 // reduced cost of each nonbasic variable
	values   []float64 // of the basic variables
	basic    []int32   // the variable of each row
	nonbasic []int32   // the variable of each column
	atUpper  []bool    // of each nonbasic variable: whether it is at its upper bound
	lower    []float64 // of each variable
	upper    []float64
}

// program is the data of a linear program: min cost·x, rows·x + slack = right, slack >= 0.
type program struct {
	right   []float64
	cost    []float64
	entries [][]coefficient // of each column
}

type coefficient struct {
	row    int32
	amount float64
}

const (
	feasibility = 1e-9 // by which a variable may be beyond its bound
	leastPivot  = 1e-9
)

// newSimplex returns the program with all slacks in the basis, and columns of costs that are not
// below zero at their lower bounds: its reduced costs are feasible.
func newSimplex(p *program, lower, upper []float64) *simplex {
	rows, columns := len(p.right), len(p.cost)
	s := &simplex{
		program: p, rows: rows, columns: columns, table: make([]float64, rows*columns), reduced: slices.Clone(p.cost),
		values: slices.Clone(p.right), basic: make([]int32, rows), nonbasic: make([]int32, columns), atUpper: make([]bool, columns),
		lower: slices.Concat(lower, make([]float64, rows)), upper: slices.Clone(upper),
	}
	for j := range p.cost {
		s.nonbasic[j] = int32(j)
		for _, e := range p.entries[j] {
			s.table[int(e.row)*columns+j] = e.amount
			s.values[e.row] -= float64(e.amount * lower[j])
		}
	}
	for i := range rows {
		s.basic[i] = int32(columns + i)
		s.upper = append(s.upper, math.Inf(1))
	}
	return s
}

// copyFrom makes s equal to another state of the same program.
func (s *simplex) copyFrom(o *simplex) {
	s.program, s.rows, s.columns = o.program, o.rows, o.columns
	s.table = append(s.table[:0], o.table...)
	s.reduced, s.values = append(s.reduced[:0], o.reduced...), append(s.values[:0], o.values...)
	s.basic, s.nonbasic, s.atUpper = append(s.basic[:0], o.basic...), append(s.nonbasic[:0], o.nonbasic...), append(s.atUpper[:0], o.atUpper...)
	s.lower, s.upper = append(s.lower[:0], o.lower...), append(s.upper[:0], o.upper...)
}

// restrict changes the bounds of a column.
func (s *simplex) restrict(column int, lower, upper float64) {
	for j, variable := range s.nonbasic {
		if int(variable) != column {
			continue
		}
		before := s.boundOf(j)
		s.lower[column], s.upper[column] = lower, upper
		if change := s.boundOf(j) - before; change != 0 {
			for i := range s.values {
				s.values[i] -= float64(s.table[i*s.columns+j] * change)
			}
		}
		return
	}
	s.lower[column], s.upper[column] = lower, upper
}

// boundOf is the value of a nonbasic variable.
func (s *simplex) boundOf(j int) float64 {
	if s.atUpper[j] {
		return s.upper[s.nonbasic[j]]
	}
	return s.lower[s.nonbasic[j]]
}

// valuesOf writes the values of the columns.
func (s *simplex) valuesOf(x []float64) {
	for j, variable := range s.nonbasic {
		if int(variable) < s.columns {
			x[variable] = s.boundOf(j)
		}
	}
	for i, variable := range s.basic {
		if int(variable) < s.columns {
			x[variable] = s.values[i]
		}
	}
}

// solve makes the basis optimal by the dual simplex method, until no pivots are left. The reduced
// costs stay feasible, so that they give a bound at any time. If there is no solution, it returns
// the row of a variable that cannot get to its bound, and whether that is its upper one; else -1.
func (s *simplex) solve(pivots int) (row int, above bool, left int) {
	for left = pivots; left > 0; left-- {
		row, above = s.leaving()
		if row < 0 {
			return row, above, left
		}
		column, _ := s.ratio(row, above)
		if column < 0 {
			return row, above, left
		}
		s.pivot(row, column, above)
	}
	return -1, false, 0
}

// leaving returns the basic variable that is the farthest beyond a bound, and whether that is the
// upper one; -1 if there is none.
func (s *simplex) leaving() (row int, above bool) {
	row = -1
	most := feasibility
	for i, variable := range s.basic {
		if off := s.lower[variable] - s.values[i]; off > most {
			row, above, most = i, false, off
		}
		if off := s.values[i] - s.upper[variable]; off > most {
			row, above, most = i, true, off
		}
	}
	return row, above
}

// ratio returns the nonbasic variable that keeps the reduced costs feasible if it enters the basis
// for the basic variable of a row, which is to fall or to rise, and by how much the objective then
// rises for each unit; -1 if there is none. Of equal ones it is that with the largest entry.
func (s *simplex) ratio(row int, falls bool) (column int, least float64) {
	column, least = -1, math.Inf(1)
	most := 0.0
	for j, amount := range s.table[row*s.columns : (row+1)*s.columns] {
		if s.atUpper[j] == falls {
			amount = -amount
		}
		if amount < leastPivot || s.isFixed(s.nonbasic[j]) {
			continue
		}
		rise := math.Abs(s.reduced[j]) / amount
		if rise < least || rise == least && amount > most {
			column, least, most = j, rise, amount
		}
	}
	return column, least
}

func (s *simplex) isFixed(variable int32) bool { return s.lower[variable] >= s.upper[variable] }

// pivot exchanges the basic variable of a row, which goes to a bound, with a nonbasic one.
func (s *simplex) pivot(row, column int, falls bool) {
	leaves, enters := s.basic[row], s.nonbasic[column]
	bound := s.lower[leaves]
	if falls {
		bound = s.upper[leaves]
	}
	own := s.table[row*s.columns : (row+1)*s.columns]
	pivot := own[column]
	change := (s.values[row] - bound) / pivot
	s.values[row] = s.boundOf(column) + change
	own[column] = 1
	for j := range own {
		own[j] /= pivot
	}
	for i := range s.values {
		if i == row {
			continue
		}
		other := s.table[i*s.columns : (i+1)*s.columns]
		if factor := other[column]; factor != 0 {
			s.values[i] -= float64(factor * change)
			subtract(other, own, factor, column)
		}
	}
	subtract(s.reduced, own, s.reduced[column], column)
	s.basic[row], s.nonbasic[column], s.atUpper[column] = enters, leaves, falls
}

// subtract subtracts a multiple of the row of the pivot from another one.
func subtract(row, pivot []float64, factor float64, column int) {
	row[column] = 0
	for j, amount := range pivot[:len(row)] {
		row[j] -= float64(factor * amount)
	}
}

// bound returns a lower bound on the objective that is valid whatever the rounding errors of the
// table: that of prices of the rows, at most zero, in the program itself, less the errors of this
// sum (Neumaier and Shcherbina, 2004). It writes the reduced costs of the columns at these prices,
// nearer to zero by their errors. No column is below zero.
func (s *simplex) bound(prices, reduced []float64) float64 {
	sum, size := 0.0, 0.0
	for i, price := range prices {
		part := float64(price * s.program.right[i])
		sum += part
		size += math.Abs(part)
	}
	for j, cost := range s.program.cost {
		own, terms := cost, math.Abs(cost)
		for _, e := range s.program.entries[j] {
			part := float64(e.amount * prices[e.row])
			own -= part
			terms += math.Abs(part)
		}
		margin := float64(float64(2+len(s.program.entries[j])) * terms * 0x1p-52)
		at := s.upper[j]
		if reduced[j] = 0; own > margin {
			at, reduced[j] = s.lower[j], own-margin
		} else if own < -margin {
			reduced[j] = own + margin
		}
		part := float64((own - margin) * at)
		sum += part
		size += math.Abs(part)
	}
	return sum - float64(size*float64(s.rows+s.columns)*0x1p-51)
}

// prices writes the prices of the rows, at most zero: those of the reduced costs, and a multiple of
// a row of the table; -1 is none.
func (s *simplex) prices(prices []float64, row int, multiple float64) {
	clear(prices)
	add := func(variable int32, price float64) {
		if i := int(variable) - s.columns; i >= 0 {
			prices[i] -= price
		}
	}
	for j, variable := range s.nonbasic {
		add(variable, s.reduced[j])
		if row >= 0 {
			add(variable, float64(multiple*s.table[row*s.columns+j]))
		}
	}
	if row >= 0 {
		add(s.basic[row], multiple)
	}
	for i := range prices {
		prices[i] = min(prices[i], 0)
	}
}

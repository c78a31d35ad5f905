package evaluation

import (
	"cmp"
	"slices"
)

// Equal compares the costs of policies on one load at equal attainment.
type Equal struct {
	Load   string `json:"load"`
	Policy string `json:"policy"`
	// AtObjective is the cost at the percentile of the objective, AtWVA at the attainment of WVA.
	AtObjective *Cost `json:"at_objective,omitzero"` // nil: the policy does not reach it
	AtWVA       *Cost `json:"at_wva,omitzero"`       // nil: as above, or WVA was not run
	// Default is the point with the default knob. Of several choices it is the cheapest one that
	// meets the objective, or the one with the highest attainment if none does.
	Default *Point `json:"default,omitzero"`
}

// Cost is the lowest cost of a policy at an attainment, with the knob and the choice that hindsight
// finds best.
type Cost struct {
	Attainment  float64 `json:"attainment"`
	CostPerHour float64 `json:"cost_per_hour"`
	// ToWVA is the ratio of the cost to that of WVA; 0 if WVA has none.
	ToWVA  float64 `json:"to_wva,omitzero"`
	Choice string  `json:"choice,omitzero"`
	// Knob is that of the nearest point whose attainment is at least this one.
	Knob float64 `json:"knob"`
}

// EqualAttainment returns the comparison for each load and policy of points, in their order. The
// objectives are percentiles by load.
func EqualAttainment(points []Point, objectives map[string]float64) []Equal {
	var rows []Equal
	for _, own := range grouped(points, func(p Point) string { return p.Load }) {
		rows = append(rows, equalOnLoad(own, objectives[own[0].Load])...)
	}
	return rows
}

// grouped returns the points by a key, in the order in which the keys come first.
func grouped(points []Point, key func(Point) string) (groups [][]Point) {
	at := make(map[string]int)
	for _, p := range points {
		k, found := at[key(p)]
		if !found {
			k = len(groups)
			at[key(p)] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], p)
	}
	return groups
}

// equalOnLoad returns the rows of one load.
func equalOnLoad(points []Point, objective float64) []Equal {
	byPolicy := map[string][]Point{}
	var names []string
	for _, p := range points {
		if byPolicy[p.Policy] == nil {
			names = append(names, p.Policy)
		}
		byPolicy[p.Policy] = append(byPolicy[p.Policy], p)
	}
	// Its own sweep of the percentile is the curve of WVA.
	curve := slices.Concat(byPolicy[wvaName], byPolicy[wvaPercentileName])
	ours := costAt(curve, objective)
	var rows []Equal
	for _, name := range names {
		own := byPolicy[name]
		row := Equal{Load: points[0].Load, Policy: name, Default: defaultPoint(own, objective)}
		row.AtObjective = costAt(own, objective)
		row.AtObjective.compare(ours)
		for _, w := range byPolicy[wvaName] {
			row.AtWVA = costAt(own, w.Attainment)
			row.AtWVA.compare(&Cost{CostPerHour: w.CostPerHour})
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *Cost) compare(ours *Cost) {
	if c != nil && ours != nil && ours.CostPerHour > 0 {
		c.ToWVA = c.CostPerHour / ours.CostPerHour
	}
}

// defaultPoint returns the point with the default knob.
func defaultPoint(points []Point, objective float64) *Point {
	var best *Point
	for i, p := range points {
		if !p.Default {
			continue
		}
		switch {
		case best == nil:
			best = &points[i]
		case min(p.Attainment, objective) != min(best.Attainment, objective):
			if p.Attainment > best.Attainment {
				best = &points[i]
			}
		case p.CostPerHour < best.CostPerHour:
			best = &points[i]
		}
	}
	return best
}

// costAt returns the lowest cost at an attainment over the choices of a policy, each with its own
// curve. It returns nil if no choice reaches the attainment.
func costAt(points []Point, attainment float64) *Cost {
	var best *Cost
	for _, own := range grouped(points, func(p Point) string { return p.Choice }) {
		if cost := interpolate(lowerHull(own), attainment); cost != nil && (best == nil || cost.CostPerHour < best.CostPerHour) {
			best = cost
		}
	}
	return best
}

// interpolate returns the cost at an attainment on a hull: on the straight line between two points,
// or that of the first point below its attainment. Above the last point it returns nil.
func interpolate(hull []Point, attainment float64) *Cost {
	for i, p := range hull {
		if p.Attainment < attainment {
			continue
		}
		cost := p.CostPerHour
		if i > 0 {
			before := hull[i-1]
			share := (attainment - before.Attainment) / (p.Attainment - before.Attainment)
			cost = before.CostPerHour + share*(p.CostPerHour-before.CostPerHour)
		}
		return &Cost{Attainment: attainment, CostPerHour: cost, Choice: p.Choice, Knob: p.Knob}
	}
	return nil
}

// lowerHull returns the corners of the lower convex hull of cost over attainment, from the cheapest
// point on: both rise.
func lowerHull(points []Point) []Point {
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.CostPerHour, b.CostPerHour), cmp.Compare(b.Attainment, a.Attainment))
	})
	var hull []Point
	for _, p := range sorted {
		if len(hull) > 0 && p.Attainment <= hull[len(hull)-1].Attainment {
			continue // it costs more for no more attainment
		}
		for len(hull) > 1 && !below(hull[len(hull)-2], hull[len(hull)-1], p) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// below reports whether b lies below the line from a to c, of ascending attainments.
func below(a, b, c Point) bool {
	return (b.CostPerHour-a.CostPerHour)*(c.Attainment-a.Attainment) < (c.CostPerHour-a.CostPerHour)*(b.Attainment-a.Attainment)
}

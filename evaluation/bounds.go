package evaluation

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Bound is an estimate of the least cost of an attainment on a load: the mean over the seeds.
type Bound struct {
	Load        string  `json:"load"`
	Attainment  float64 `json:"attainment"`
	CostPerHour float64 `json:"cost_per_hour"`
	// ToWVA is the ratio to the cost of WVA at the same attainment; 0 if WVA has none.
	ToWVA   float64 `json:"to_wva,omitzero"`
	Variant string  `json:"variant"` // the cheapest of the first seed; all replicas are of one
	// AtWVA is whether the attainment is that of WVA, and not the objective.
	AtWVA bool `json:"at_wva"`
}

// AddBounds adds bounds, with their ratios to WVA.
func (c *Comparison) AddBounds(bounds []Bound) {
	for _, b := range bounds {
		for _, e := range c.Equal {
			ours := e.AtObjective
			if b.AtWVA {
				ours = e.AtWVA
			}
			if e.Load == b.Load && e.Policy == wvaName && ours != nil && ours.CostPerHour > 0 {
				b.ToWVA = b.CostPerHour / ours.CostPerHour
			}
		}
		c.Bounds = append(c.Bounds, b)
	}
}

// Bounds returns a low estimate of the cost at which the objective, and the attainment of WVA if it
// is in the points, could be reached if all requests were known. An attainment that no number of
// replicas of one variant reaches has no row.
//
// For each minute and number of replicas, the requests that are served within the objective are
// counted in a simulation of that minute alone, with half a minute before it and after it. A
// schedule pays for its replicas, and for the mean start-up time of each one that it adds. For a
// value of a served request, dynamic programming finds the best schedule; the least value counts
// whose schedule reaches the attainment. Between it and the schedule of the next lower value, cost
// and attainment are interpolated.
//
// It is an estimate and not a proven bound. It is too low in that queues of more than half a minute
// are forgotten, drains are free, and schedules are interpolated; it is too high in that replicas
// change at full minutes only and are all of one variant.
func Bounds(ctx context.Context, o SweepOptions, points []Point) ([]Bound, error) {
	var bounds []Bound
	for _, entry := range o.Entries {
		attainments := []float64{entry.Setup.Objective().Percentile}
		for _, p := range points {
			if p.Load == entry.Load.Name && p.Policy == wvaName {
				attainments = append(attainments, p.Attainment)
			}
		}
		bySeed := make([][]Bound, max(1, o.Seeds))
		group, running := errgroup.WithContext(ctx)
		group.SetLimit(max(1, o.Jobs))
		for seed := range bySeed {
			group.Go(func() error {
				if err := context.Cause(running); err != nil {
					return err
				}
				c, err := NewCase(entry.Load, entry.Setup, uint64(seed)+1)
				bySeed[seed] = estimates(c, attainments)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return bounds, err
		}
		for i := range attainments {
			if mean, known := meanBound(bySeed, i); known {
				mean.AtWVA = i > 0
				bounds = append(bounds, mean)
			}
		}
	}
	return bounds, nil
}

// estimates returns a bound of one seed for each attainment, over the variants; without a variant
// if none reaches it.
func estimates(c Case, attainments []float64) []Bound {
	best := make([]Bound, len(attainments))
	if len(c.Requests) == 0 {
		return best
	}
	for _, choice := range eachVariant(c.Setup) {
		t := newTable(c, choice)
		for i, attainment := range attainments {
			_, cost, err := t.scheduleFor(attainment)
			if err == nil && (best[i].Variant == "" || cost < best[i].CostPerHour) {
				best[i] = Bound{Load: c.Load, Variant: choice.Name, Attainment: attainment, CostPerHour: cost}
			}
		}
	}
	return best
}

// meanBound returns the mean of a bound over the seeds; it is not known if a seed has none.
func meanBound(bySeed [][]Bound, i int) (Bound, bool) {
	mean := bySeed[0][i]
	sum := 0.0
	for _, bounds := range bySeed {
		if bounds[i].Variant == "" {
			return Bound{}, false
		}
		sum += bounds[i].CostPerHour
	}
	mean.CostPerHour = sum / float64(len(bySeed))
	return mean, true
}

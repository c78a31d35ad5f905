package evaluation

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/wva-project/wva/simulation"
)

// oneLess shows if WVA has a replica too many: it replays the numbers of WVA on the same case,
// with one replica less of the cheapest variant that has some, and at least one in all.
func oneLess() Policy {
	return Policy{
		Name:    "wva-one-less",
		Summary: "the replicas that WVA had, with one less and at least one, for comparison only",
		Start: func(c Case, _ Setting, _ *simulation.Fleet) (Controller, error) {
			o, err := Run(context.Background(), c, wva(), Setting{})
			if err != nil {
				return nil, err
			}
			return newReplay(c.Setup.Fleet.Variants, o.Replicas, c.WarmUp), nil
		},
	}
}

// replay sets the numbers of replicas of another run of the same case, with one less from the
// beginning of the load on. Until then it has those that the other run had at that time.
type replay struct {
	variants []simulation.VariantSpec // the cheapest first
	changes  []Change                 // to come, by the load's time
	replicas map[string]int           // of the other run, by variant
	begin    float64                  // of the load, in the fleet's time
}

func newReplay(variants []simulation.VariantSpec, changes []Change, begin float64) *replay {
	byPrice := slices.SortedStableFunc(slices.Values(variants), func(a, b simulation.VariantSpec) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), a.ID.Compare(b.ID))
	})
	r := &replay{variants: byPrice, changes: changes, replicas: map[string]int{}, begin: begin}
	r.advance(0)
	return r
}

// advance applies the changes until a time of the load.
func (r *replay) advance(until float64) {
	for len(r.changes) > 0 && r.changes[0].Seconds <= until {
		r.replicas[r.changes[0].Variant] = r.changes[0].Replicas
		r.changes = r.changes[1:]
	}
}

// less returns the replicas with one less: of the cheapest variant that has some.
func (r *replay) less() map[string]int {
	total, left := 0, maps.Clone(r.replicas)
	for _, n := range left {
		total += n
	}
	if total <= 1 {
		return left
	}
	for _, v := range r.variants {
		if left[v.ID.Name] > 0 {
			left[v.ID.Name]--
			break
		}
	}
	return left
}

// Step implements [Controller]: the numbers until now, and the time of the next change.
func (r *replay) Step(_ context.Context, f *simulation.Fleet) (float64, error) {
	r.advance(f.Now() - r.begin)
	replicas := r.replicas
	if f.Now() >= r.begin {
		replicas = r.less()
	}
	for _, v := range r.variants {
		if err := f.Scale(v.ID, replicas[v.ID.Name]); err != nil {
			return 0, err
		}
	}
	switch {
	case f.Now() < r.begin:
		return r.begin, nil
	case len(r.changes) > 0:
		return r.begin + r.changes[0].Seconds, nil
	}
	return math.Inf(1), nil
}

// Close implements [Controller].
func (*replay) Close() error { return nil }

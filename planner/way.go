package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// giveWay lets models shrink that are frozen because replicas are saturated or too slow, where others of no lower priority are short
// of a kind of accelerators that they have: in a shortage all are saturated, and the first to come would keep all. Such a
// model still wants what it has, so that it gives up no more than the others need. It reports whether there is such a model.
// What is frozen because data are missing gives nothing up.
func (r *round) giveWay(outcomes [][]outcome) bool {
	if len(r.x.stock.kinds) == 0 {
		return false
	}
	found := false
	for _, z := range r.sizings {
		if !z.need.yields() || !slices.ContainsFunc(z.choices, func(c choice) bool { return c.now > 0 && r.isWanted(c, z, outcomes) }) {
			continue
		}
		stands := 0.0
		for i, c := range z.choices {
			stands += float64(z.share(i) * float64(c.now))
		}
		z.need.wanted, z.need.freeze, found = max(z.need.wanted, stands), "", true
	}
	return found
}

// yields reports whether what keeps the model from shrinking gives way to others.
func (n need) yields() bool {
	return n.freeze == fleet.CodeSaturated || n.freeze == fleet.CodeObjectiveMissed
}

// isWanted reports whether another model of no lower priority is short of a variant's kind of accelerators.
func (r *round) isWanted(c choice, of *sizing, outcomes [][]outcome) bool {
	k, limited := r.x.stock.of(c.variant)
	if !limited {
		return false
	}
	if k.shortFor == nil {
		k.shortFor = r.shortOf(k, outcomes)
	}
	return slices.ContainsFunc(k.shortFor, func(z *sizing) bool { return z != of && z.model.priority >= of.model.priority })
}

// shortOf returns the models that are short of a kind of accelerators.
func (r *round) shortOf(k *kindStock, outcomes [][]outcome) []*sizing {
	short := []*sizing{}
	for i, z := range r.sizings {
		s := z.story(outcomes[i], r.x)
		if s.short <= tiny || !z.need.some {
			continue
		}
		for j, c := range z.choices {
			if own, limited := r.x.stock.of(c.variant); limited && own == k && outcomes[i][j].crowds() {
				short = append(short, z)
				break
			}
		}
	}
	return short
}

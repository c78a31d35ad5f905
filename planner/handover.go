package planner

import (
	"cmp"
	"slices"
)

// makeBeforeBreak lets variants shrink only as far as the ready replicas that are left carry what is wanted, as they have
// shown it. A replica that is not ready carries nothing, and is the first that goes when a workload shrinks.
func (z *sizing) makeBeforeBreak(outcomes []outcome) {
	left := 0.0
	var shrinking []int
	for i, c := range z.choices {
		left += float64(z.shown(i) * float64(min(outcomes[i].replicas, c.ready)))
		if outcomes[i].replicas < c.now {
			shrinking = append(shrinking, i)
		}
	}
	slices.SortFunc(shrinking, func(i, j int) int { // what carries most for its price is kept first
		a, b := z.choices[i], z.choices[j]
		return cmp.Or(cmp.Compare(a.Cost*z.share(j), b.Cost*z.share(i)), a.ID.Compare(b.ID))
	})
	enough := z.enough(outcomes) * (1 - tiny)
	for _, i := range shrinking {
		c, o := z.choices[i], &outcomes[i]
		o.aim = o.replicas
		for limit := c.Range.Clamp(min(c.now, c.mostPlaceable)); left < enough && o.replicas < limit; {
			next := c.Range.Clamp(o.replicas + 1)
			left += float64(z.shown(i) * float64(min(next, c.ready)-min(o.replicas, c.ready)))
			o.replicas, o.placed, o.delayed = next, next, true
		}
	}
}

// enough returns what ready replicas have to carry before others go: what is wanted, or what the whole plan carries where
// accelerators are short. Replicas that others need more are not kept for a demand that nobody will carry.
func (z *sizing) enough(outcomes []outcome) float64 {
	carries, shown := 0.0, 0.0
	crowded := false
	for i, c := range z.choices {
		placed := float64(outcomes[i].placed)
		carries += float64(z.share(i) * placed)
		if outcomes[i].placed > c.ready {
			shown += float64(z.share(i) * placed)
		} else {
			shown += float64(z.shown(i) * placed)
		}
		crowded = crowded || outcomes[i].crowds()
	}
	if crowded && carries < z.need.wanted*(1-tiny) {
		return min(z.need.wanted, shown)
	}
	return z.need.wanted
}

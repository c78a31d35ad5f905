package planner

import "github.com/wva-project/wva/fleet"

// preempt allows models to scale down although replicas are saturated or too slow, if other models
// of no lower priority lack accelerators of a type that they have: in a shortage all models are
// saturated, and otherwise the first one would keep all. Such a model still wants its current
// capacity, so that it yields no more than others need. It reports whether there is such a model.
// If scale-down is blocked by missing data, the model yields nothing.
func (r *round) preempt(outcomes [][]outcome) bool {
	if len(r.x.supply.types) == 0 {
		return false
	}
	found := false
	for _, z := range r.sizings {
		if !z.need.yields() {
			continue
		}
		if yielded := r.preemptible(z, outcomes); yielded != nil {
			current := 0.0
			for i, c := range z.choices {
				current += float64(z.share(i) * float64(c.now))
			}
			z.need.wanted, z.need.preemptible, found = max(z.need.wanted, current), yielded, true
		}
	}
	return found
}

// yields reports whether the block of the model's scale-down allows preemption.
func (n need) yields() bool {
	return n.blocked == fleet.CodeSaturated || n.blocked == fleet.CodeSLOMissed
}

// preemptible returns how many replicas of each variant may go to others; nil if none may.
func (r *round) preemptible(z *sizing, outcomes [][]outcome) []int {
	yielded, lost, some := make([]int, len(z.choices)), 0.0, false
	for i, c := range z.choices {
		k, limited := r.x.supply.of(c.variant)
		if !limited || c.now == 0 {
			continue
		}
		if k.shortFor == nil {
			k.shortFor = r.shortOf(k, outcomes)
		}
		for _, other := range k.shortFor {
			if other != z && other.model.priority >= z.model.priority {
				yielded[i] = max(yielded[i], r.yieldsTo(offer{z, i, lost}, other, k))
			}
		}
		lost += float64(z.share(i) * float64(yielded[i]))
		some = some || yielded[i] > 0
	}
	if !some {
		return nil
	}
	return yielded
}

// offer is a variant that may yield replicas, of a model that yields capacity of other variants
// already.
type offer struct {
	*sizing
	choice int
	lost   float64
}

// yieldsTo returns how many replicas may go to another model that lacks accelerators of a type: all
// to a higher priority; to an equal one as long as the model that yields is then served no worse
// than the other. So the next cycle does not move them back.
func (r *round) yieldsTo(of offer, other *sizing, k *typeSupply) (n int) {
	c := of.choices[of.choice]
	gain, tries := r.gain(other, k)
	switch {
	case gain <= 0 && tries == 0:
		return 0
	case other.model.priority > of.model.priority:
		return c.now
	}
	frees := c.takes()
	if gain <= 0 { // its capacity is not known, so it may probe with one
		return min(c.now-1, (tries+frees-1)/frees)
	}
	for n < c.now {
		left := of.served(-of.lost - float64(float64(n+1)*of.share(of.choice)))
		if left < other.served(float64(float64((n+1)*frees)*gain))*(1-tiny) {
			break
		}
		n++
	}
	return n
}

// gain returns the most capacity that a model gets from one accelerator of a type, and how many
// accelerators a probe of the model needs there.
func (r *round) gain(z *sizing, k *typeSupply) (gain float64, tries int) {
	for i, c := range z.choices {
		if own, limited := r.x.supply.of(c.variant); limited && own == k {
			gain = max(gain, z.share(i)/float64(c.takes()))
			if i == z.need.probe && !z.need.waits {
				tries = c.takes()
			}
		}
	}
	return gain, tries
}

// served returns the share of the demand without backlog that replicas which are ready or starting
// can serve, with this capacity added.
func (z *sizing) served(more float64) float64 {
	served := max(0, z.committed()+more)
	if served >= z.demand.steady {
		return 1
	}
	return served / z.demand.steady
}

// shortOf returns the models that lack accelerators of a type.
func (r *round) shortOf(k *typeSupply, outcomes [][]outcome) []*sizing {
	short := []*sizing{}
	for i, z := range r.sizings {
		untried := z.need.probe != none && outcomes[i][z.need.probe].placeable == 0
		if !z.need.some || !untried && z.explanation(outcomes[i], r.x).short <= tiny {
			continue
		}
		for j, c := range z.choices {
			if own, limited := r.x.supply.of(c.variant); limited && own == k && outcomes[i][j].limitedByAccelerators() {
				short = append(short, z)
				break
			}
		}
	}
	return short
}

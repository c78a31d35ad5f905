package planner

import "github.com/wva-project/wva/fleet"

// giveWay lets models shrink that are frozen because replicas are saturated or too slow, where others of no lower priority are
// short of a kind of accelerators that they have: in a shortage all are saturated, and the first to come would keep all. Such a
// model still wants what it has, so that it gives up no more than the others need. It reports whether there is such a model.
// What is frozen because data are missing gives nothing up.
func (r *round) giveWay(outcomes [][]outcome) bool {
	if len(r.x.supply.types) == 0 {
		return false
	}
	found := false
	for _, z := range r.sizings {
		if !z.need.yields() {
			continue
		}
		if gives := r.allSpares(z, outcomes); gives != nil {
			stands := 0.0
			for i, c := range z.choices {
				stands += float64(z.share(i) * float64(c.now))
			}
			z.need.wanted, z.need.preemptible, found = max(z.need.wanted, stands), gives, true
		}
	}
	return found
}

// yields reports whether what keeps the model from shrinking gives way to others.
func (n need) yields() bool {
	return n.blocked == fleet.CodeSaturated || n.blocked == fleet.CodeSLOMissed
}

// allSpares returns how many replicas of each variant may go to others; nil where none may.
func (r *round) allSpares(z *sizing, outcomes [][]outcome) []int {
	gives, lost, some := make([]int, len(z.choices)), 0.0, false
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
				gives[i] = max(gives[i], r.spares(offer{z, i, lost}, other, k))
			}
		}
		lost += float64(z.share(i) * float64(gives[i]))
		some = some || gives[i] > 0
	}
	if !some {
		return nil
	}
	return gives
}

// offer is a variant that may give replicas up, of a model that gives up something else already.
type offer struct {
	*sizing
	choice int
	lost   float64
}

// spares returns how many replicas may go to another model that is short of a kind: all to a higher priority, and to an equal one
// as long as the giver is then served no worse than the other. So what went that way does not come back with the next cycle.
func (r *round) spares(of offer, other *sizing, k *typeSupply) (n int) {
	c := of.choices[of.choice]
	gain, tries := r.gain(other, k)
	switch {
	case gain <= 0 && tries == 0:
		return 0
	case other.model.priority > of.model.priority:
		return c.now
	}
	frees := c.takes()
	if gain <= 0 { // what it carries is not known, so it may try with one
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

// gain returns the most that a model carries on one accelerator of a kind, and how many a replica takes that is to be tried there.
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

// served returns which part of the demand, its backlog not counted, is carried by what stands or loads and so much more.
func (z *sizing) served(more float64) float64 {
	carried := max(0, z.committed()+more)
	if carried >= z.demand.steady {
		return 1
	}
	return carried / z.demand.steady
}

// shortOf returns the models that are short of a kind of accelerators.
func (r *round) shortOf(k *typeSupply, outcomes [][]outcome) []*sizing {
	short := []*sizing{}
	for i, z := range r.sizings {
		untried := z.need.probe != none && outcomes[i][z.need.probe].placed == 0
		if !z.need.some || !untried && z.story(outcomes[i], r.x).short <= tiny {
			continue
		}
		for j, c := range z.choices {
			if own, limited := r.x.supply.of(c.variant); limited && own == k && outcomes[i][j].crowds() {
				short = append(short, z)
				break
			}
		}
	}
	return short
}

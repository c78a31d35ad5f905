package planner

import (
	"fmt"
	"math"

	"github.com/wva-project/wva/analyzer"
)

// pool is the replicas of a model that share its requests. A demand requires its own capacity and a
// headroom for the percentile, one number for all variants: the more replicas share, the less
// headroom each of them needs.
type pool struct {
	analyzer.Pool
	mean float64 // mean capacity of a replica, of the reference demand; 0 if it is not known
}

// sharePool makes the shares of the candidates mean capacities, and the demand the capacity that it
// requires. The pool is a mean over the replicas that exist; if there are none, over one of each
// variant.
func (z *sizedModel) sharePool() {
	p, share := poolOf(z.candidates, func(c candidate) int { return c.alive() })
	if share <= 0 {
		p, share = poolOf(z.candidates, func(candidate) int { return 1 })
	}
	if p.Alone <= 0 {
		return
	}
	part := p.At(1 / share) // shares are those of as many replicas as the reference demand needs
	p.mean = share / part
	for i := range z.candidates {
		z.candidates[i].share /= part
		z.candidates[i].alone /= part
		z.candidates[i].capacity.Loss.Value /= part
	}
	z.pool = p
	for _, amount := range []*float64{&z.demand.latest, &z.demand.steady, &z.demand.highest} {
		*amount = p.required(*amount)
	}
}

// poolOf returns the mean over so many replicas of each candidate, by capacity, and the mean
// capacity of one in shares. The capacity of a single replica is averaged in logarithms.
func poolOf(candidates []candidate, replicas func(candidate) int) (p pool, share float64) {
	var count, capacity, alone, exponent float64
	for _, c := range candidates {
		n := float64(replicas(c))
		if c.share <= 0 || n <= 0 {
			continue
		}
		count += n
		capacity += float64(n * c.share)
		if own := c.capacity.Pool; own.Alone > 0 {
			weight := float64(n * c.share * -math.Log(own.Alone))
			alone += weight
			exponent += float64(weight * own.Exponent)
		}
	}
	if count <= 0 {
		return p, 0
	}
	if alone > 0 {
		p.Alone, p.Exponent = math.Exp(-alone/capacity), exponent/alone
	}
	return p, capacity / count
}

// required returns the capacity that a demand requires, both of the reference demand.
func (p pool) required(demand float64) float64 {
	if p.mean <= 0 {
		return demand
	}
	return p.mean * p.Required(demand/p.mean)
}

// headroomText returns the headroom of the wanted demand as text; "" if it is below 1 %.
func (z *sizedModel) headroomText() string {
	if z.pool.mean <= 0 || z.wanted <= 0 || z.alone != nil { // the pool is that of the mix
		return ""
	}
	replicas := z.wanted / z.pool.mean
	headroom := 100 * (1/z.pool.At(replicas) - 1)
	if headroom < 1 {
		return ""
	}
	return fmt.Sprintf(", headroom %.0f%% for %s", headroom, countOf(int(math.Ceil(min(replicas, math.MaxInt32)-tiny)), "replica", "replicas"))
}

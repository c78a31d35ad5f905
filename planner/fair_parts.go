package planner

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// isShort reports whether accelerators are short: a model with demand is not served because of
// them.
func (r *round) isShort(a answer) bool {
	if len(r.gpus.types) == 0 {
		return false
	}
	return slices.ContainsFunc(r.models, func(z *sizedModel) bool {
		return z.wanted > 0 && r.lacks(z, a) || z.probe != none && !z.waits && a.unsatisfied[z.candidates[z.probe].ID]
	})
}

// lacks reports whether a model is not served because accelerators are short.
func (r *round) lacks(z *sizedModel, a answer) bool {
	covered, limited := 0.0, false
	for _, c := range z.candidates {
		covered += float64(c.share * float64(a.counts[c.ID]))
		why := a.reasons[c.ID]
		limited = limited || a.unsatisfied[c.ID] || why != nil && (why.Limit == solver.LimitNodes || why.Limit == solver.LimitPool)
	}
	return limited && covered < z.wanted*(1-tiny)
}

// share solves again while accelerators are short. First each model is asked for no more than its
// fair part can serve: these replicas fit together, so that no model falls below the smaller of its
// own demand and its equal part of the accelerators because the demand of another is larger. Then
// all demand is asked for, with those replicas as lower bounds.
func (r *round) share(decided answer) answer {
	parts, most := r.fairParts(decided)
	fair := question{
		amount:   func(z *sizedModel) float64 { return min(z.measured(), parts[z]) },
		preempts: true, unbounded: true, floors: r.lastReplicas(), most: most, tolerance: roughly,
	}
	r.floors = r.solve(fair).counts
	for _, z := range r.models {
		for _, c := range z.candidates {
			// the first solution limits starts by accelerators that others may have to leave
			r.startable[c.ID] = max(r.startable[c.ID], r.floors[c.ID])
			r.bounds[c.ID] = slices.DeleteFunc(r.bounds[c.ID], func(b bound) bool { return b.yields || b.code == fleet.CodeStartsForCurrentDemand })
			if z.latest <= z.committed() {
				r.bounds[c.ID] = append(r.bounds[c.ID], r.startsForCurrentDemand(c))
			}
		}
	}
	all := question{amount: (*sizedModel).contended, preempts: true, reasons: true, floors: r.floors}
	if kept := r.existingToo(); kept != nil {
		all.floors = kept
	}
	return r.solve(all)
}

// measured is the demand of a model that counts against others: the latest, without that of the
// peak window. If its scale-down is blocked by a rule that yields, it still asks for its existing
// replicas, and so yields no more than others need.
func (z *sizedModel) measured() float64 {
	if _, missed := z.missedObjective(); z.wanted > 0 && (missed || z.saturated() > 0) {
		return max(z.latest, z.committed())
	}
	return z.latest
}

// contended is the demand of a model beyond its fair part.
func (z *sizedModel) contended() float64 { return max(z.wanted, z.measured()) }

// fairParts returns the amount of each model's demand that its fair part of the accelerators can
// serve. For each type, the models with demand get equal parts, by priority; the part that a model
// does not need goes to the others (max-min fairness). A part of a replica goes to
// those that have one more already. It also returns the most replicas of each variant: a part of
// one type is not filled on another.
func (r *round) fairParts(decided answer) (parts map[*sizedModel]float64, most counts) {
	parts, most = make(map[*sizedModel]float64, len(r.models)), make(counts)
	for _, z := range r.models {
		for _, c := range z.candidates {
			if c.share > 0 && !c.limited() {
				parts[z] = math.Inf(1)
			}
		}
	}
	for _, k := range r.gpus.types {
		left := k.total() - r.factualGPUs(k) - r.probeGPUs(k)
		claims := r.claimsOn(k)
		for len(claims) > 0 {
			same := slices.IndexFunc(claims, func(c gpuClaim) bool { return c.model.priority != claims[0].model.priority })
			if same < 0 {
				same = len(claims)
			}
			divide(claims[:same], left)
			for _, claim := range claims[:same] {
				parts[claim.model] += r.fill(k, claim, most)
				for _, c := range claim.model.candidates {
					if own, limited := r.gpus.of(c.variant); limited && own == k {
						left -= decided.counts[c.ID] * c.takes()
					}
				}
			}
			claims = claims[same:]
		}
	}
	return parts, most
}

// fill divides the part of a claim among the variants of the model on the type: first to existing
// replicas, then to those with the most capacity for each accelerator. It returns their capacity.
func (r *round) fill(k *gpuType, claim gpuClaim, most counts) (amount float64) {
	left := claim.part * claim.best.takes()
	var own []candidate
	for _, c := range claim.model.candidates {
		if of, limited := r.gpus.of(c.variant); limited && of == k && c.fixed == nil {
			own, most[c.ID] = append(own, c), 0
		}
	}
	slices.SortStableFunc(own, func(a, b candidate) int {
		return cmp.Compare(b.share*float64(a.takes()), a.share*float64(b.takes()))
	})
	give := func(c candidate, n int) {
		n = max(0, min(n, r.domain(claim.model, c, question{preempts: true, unbounded: true}).Max-most[c.ID], left/c.takes()))
		most[c.ID] += n
		left -= n * c.takes()
		amount += float64(n) * c.share
	}
	for _, c := range own {
		give(c, c.allocated())
	}
	for _, c := range own {
		if c.share > 0 {
			give(c, unlimited)
		}
	}
	return amount
}

// gpuClaim is the claim of a model with demand on an accelerator type, in replicas of its best
// variant there.
type gpuClaim struct {
	model *sizedModel
	best  candidate // the one with the most capacity for each accelerator
	needs int       // replicas for all of the demand
	has   int       // existing replicas
	part  int       // that it gets
}

// claimsOn returns the claims on an accelerator type, the highest priority first.
func (r *round) claimsOn(k *gpuType) []gpuClaim {
	var claims []gpuClaim
	for _, z := range byPriority(r.models) {
		claim := gpuClaim{model: z}
		gpus := 0
		for _, c := range z.candidates {
			own, limited := r.gpus.of(c.variant)
			if !limited || own != k || c.share <= 0 || c.fixed != nil {
				continue
			}
			gpus += c.allocated() * c.takes()
			if claim.best.variant == nil || c.share*float64(claim.best.takes()) > claim.best.share*float64(c.takes()) {
				claim.best = c
			}
		}
		if claim.best.variant == nil || z.wanted <= 0 {
			continue
		}
		claim.needs = int(math.Ceil(min(z.measured()/claim.best.share*(1-tiny), unlimited)))
		claim.has = gpus / claim.best.takes()
		claims = append(claims, claim)
	}
	return claims
}

// divide gives each claim its fair part of so many accelerators: as many as it needs, up to a level
// that is the same for all. The replicas that are left over go to the claims with the least
// accelerators, of several to one that has that replica already.
func divide(claims []gpuClaim, gpus int) {
	part := func(c gpuClaim, level int) int { return min(c.needs, level/c.best.takes()) }
	// the first that is too high, less one
	level := sort.Search(max(0, gpus), func(level int) bool {
		total := 0
		for _, c := range claims {
			total += part(c, level+1) * c.best.takes()
		}
		return total > gpus
	})
	for i := range claims {
		claims[i].part = part(claims[i], level)
		gpus -= claims[i].part * claims[i].best.takes()
	}
	order := func(a, b *gpuClaim) int {
		return cmp.Or(cmp.Compare(a.part*a.best.takes(), b.part*b.best.takes()), -compareBool(a.has > a.part, b.has > b.part))
	}
	for range claims {
		var next *gpuClaim
		for i := range claims {
			c := &claims[i]
			if c.part < c.needs && c.best.takes() <= gpus && (next == nil || order(c, next) < 0) {
				next = c
			}
		}
		if next == nil {
			return
		}
		next.part++
		gpus -= next.best.takes()
	}
}

// factualGPUs returns the accelerators of a type that are in use whatever the demand is: those of
// held and fixed variants, and of replicas that KEDA or a rule keeps for models without demand.
func (r *round) factualGPUs(k *gpuType) (used int) {
	for _, o := range r.held {
		if o.Accelerator == k.pool.Accelerator {
			used += o.Range.Min * o.GPUs * max(1, o.Nodes)
		}
	}
	for _, z := range r.models {
		for _, c := range z.candidates {
			if own, limited := r.gpus.of(c.variant); limited && own == k && (c.fixed != nil || z.wanted <= 0) {
				used += c.factual(r.domain(z, c, question{}).Floor()) * c.takes()
			}
		}
	}
	return used
}

// probeGPUs returns the accelerators of a type that probes need in addition to existing replicas.
func (r *round) probeGPUs(k *gpuType) (needed int) {
	for _, z := range r.models {
		if z.probe == none || z.waits {
			continue
		}
		if c := z.candidates[z.probe]; c.allocated() == 0 {
			if own, limited := r.gpus.of(c.variant); limited && own == k {
				needed += c.takes()
			}
		}
	}
	return needed
}

// lastReplicas returns one replica for each model with demand that has any and can have them on
// contended accelerators only: a model that is served keeps one, whatever the others' priority.
func (r *round) lastReplicas() counts {
	last := make(counts)
	for _, z := range r.models {
		if z.wanted <= 0 || slices.ContainsFunc(z.candidates, func(c candidate) bool { return c.share > 0 && !c.limited() }) {
			continue
		}
		keeps := z.best(func(c candidate) bool { return c.allocated() > 0 && c.fixed == nil }, func(a, b candidate) int {
			return cmp.Or(-compareBool(a.ready > 0, b.ready > 0), cmp.Compare(a.price, b.price))
		})
		if keeps != none {
			last[z.candidates[keeps].ID] = 1
		}
	}
	return last
}

// existingToo returns the fair parts with all existing replicas beside them, if these fit: then no
// replica moves from one model to another. It returns nil if they do not.
func (r *round) existingToo() counts {
	floors := make(counts, len(r.floors))
	for _, z := range r.models {
		for _, c := range z.candidates {
			floors[c.ID] = r.floors[c.ID]
			if z.wanted > 0 {
				floors[c.ID] = max(floors[c.ID], min(c.allocated(), within(c, r.bounds[c.ID]).Max))
			}
		}
	}
	for _, o := range r.held {
		floors[o.Variant] = o.Range.Min
	}
	if !r.canPlace(floors) {
		return nil
	}
	return floors
}

// gpuPrices returns the price of one accelerator of each type for an hour: as configured, else the
// median over the namespaces of the variants, each of which counts once. The price in an object
// moves no replica of another tenant.
func (r *round) gpuPrices() map[fleet.Accelerator]float64 {
	if r.prices != nil {
		return r.prices
	}
	type seller struct {
		accelerator fleet.Accelerator
		namespace   string
	}
	lowest := make(map[seller]float64)
	for v := range r.owners() {
		if takes := v.takes(); takes > 0 && v.excluded == nil {
			key, price := seller{v.accelerator, v.ID.Namespace}, v.price/float64(takes)
			if before, found := lowest[key]; !found || price < before {
				lowest[key] = price
			}
		}
	}
	all := make(map[fleet.Accelerator][]float64)
	for key, price := range lowest {
		all[key.accelerator] = append(all[key.accelerator], price)
	}
	r.prices = make(map[fleet.Accelerator]float64, len(all))
	for accelerator, prices := range all {
		slices.Sort(prices)
		r.prices[accelerator] = prices[len(prices)/2]
		if row := r.accelerators[accelerator]; row.Price > 0 {
			r.prices[accelerator] = row.Price
		}
	}
	return r.prices
}

// byPriority returns the models, the highest priority first.
func byPriority(models []*sizedModel) []*sizedModel {
	return slices.SortedStableFunc(slices.Values(models), func(a, b *sizedModel) int { return cmp.Compare(b.priority, a.priority) })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

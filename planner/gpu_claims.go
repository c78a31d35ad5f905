package planner

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sort"
)

// fill divides the part of a claim among the variants of the model on the type: first to its last
// replica, then to those that rules keep, such as a minReplicaCount, then to other existing
// replicas, then to those with the most capacity for each accelerator. It returns their capacity.
func (r *round) fill(k *gpuType, claim gpuClaim, last, most counts) (amount float64) {
	left := claim.part * claim.takes
	var own []candidate
	for _, c := range claim.model.candidates {
		if c.gpuType == k && c.fixed == nil {
			own, most[c.option] = append(own, c), 0
		}
	}
	slices.SortStableFunc(own, func(a, b candidate) int {
		return cmp.Compare(b.share*float64(a.takes()), a.share*float64(b.takes()))
	})
	give := func(c candidate, n int) {
		n = max(0, min(n, r.domain(claim.model, c, question{preempts: true, unbounded: true}).Max-most[c.option], left/c.takes()))
		most[c.option] += n
		left -= n * c.takes()
		amount += float64(float64(n) * c.share)
	}
	for _, c := range own {
		give(c, last[c.option])
	}
	for _, c := range own {
		give(c, r.keptBy(claim.model, c)-most[c.option])
	}
	for _, c := range own {
		give(c, c.allocated()-most[c.option])
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
	takes int       // accelerators of one of its replicas
	needs int       // replicas for all of the demand
	has   int       // existing replicas
	kept  int       // of them, those that rules keep whatever others need
	part  int       // that it gets
}

// claimsOn returns the claims on an accelerator type, the highest priority first.
func (r *round) claimsOn(k *gpuType) []gpuClaim {
	var claims []gpuClaim
	for _, z := range byPriority(r.models) {
		claim := gpuClaim{model: z}
		gpus, kept := 0, 0
		for _, c := range z.candidates {
			if c.gpuType != k || c.share <= 0 || c.fixed != nil {
				continue
			}
			gpus += c.allocated() * c.takes()
			kept += r.keptBy(z, c) * c.takes()
			if claim.best.variant == nil || c.share*float64(claim.best.takes()) > claim.best.share*float64(c.takes()) {
				claim.best = c
			}
		}
		if claim.best.variant == nil || z.wanted <= 0 {
			continue
		}
		claim.takes = claim.best.takes()
		claim.needs = int(math.Ceil(min(z.measured()/claim.best.share*(1-tiny), unlimited)))
		claim.has = gpus / claim.takes
		claim.kept = (kept + claim.takes - 1) / claim.takes
		claims = append(claims, claim)
	}
	return claims
}

// keptBy returns the replicas of a variant that rules keep whatever others need, as far as they
// exist or will in a moment.
func (r *round) keptBy(z *sizedModel, c candidate) int {
	return c.factual(r.domain(z, c, question{preempts: true, unbounded: true}).Floor())
}

// samePriority returns how many of the claims, which begin with the highest priority, have it.
func samePriority(claims []gpuClaim) int {
	same := slices.IndexFunc(claims, func(c gpuClaim) bool { return c.model.priority != claims[0].model.priority })
	if same < 0 {
		return len(claims)
	}
	return same
}

// divide gives each claim its fair part of so many accelerators: as many as it needs, up to a level
// that is the same for all, and never fewer than rules keep. Replicas that one claim keeps beyond
// the level are missing to all others alike. The replicas that are left over go to the claims with
// the least accelerators, of several to one that has that replica already.
func divide(claims []gpuClaim, gpus int) {
	part := func(c gpuClaim, level int) int { return max(c.kept, min(c.needs, level/c.takes)) }
	// the first that is too high, less one
	level := sort.Search(max(0, gpus), func(level int) bool {
		total := 0
		for _, c := range claims {
			total += part(c, level+1) * c.takes
		}
		return total > gpus
	})
	for i := range claims {
		claims[i].part = part(claims[i], level)
		gpus -= claims[i].part * claims[i].takes
	}
	next := make(leastClaims, len(claims))
	for i := range claims {
		next[i] = indexedClaim{&claims[i], i}
	}
	heap.Init(&next)
	for given := 0; given < len(claims) && len(next) > 0; {
		c := next[0].gpuClaim
		if c.part >= c.needs || c.takes > gpus {
			heap.Pop(&next)
			continue
		}
		c.part++
		given++
		gpus -= c.takes
		heap.Fix(&next, 0)
	}
}

// leastClaims is a heap of claims: the one with the least accelerators first, of several one that
// has a further replica already, then the first.
type leastClaims []indexedClaim

type indexedClaim struct {
	*gpuClaim
	index int
}

func (l leastClaims) Len() int { return len(l) }

func (l leastClaims) Less(i, j int) bool {
	a, b := l[i], l[j]
	least := cmp.Compare(a.part*a.takes, b.part*b.takes)
	return cmp.Or(least, -compareBool(a.has > a.part, b.has > b.part), cmp.Compare(a.index, b.index)) < 0
}

func (l leastClaims) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

func (l *leastClaims) Push(x any) { *l = append(*l, x.(indexedClaim)) }

func (l *leastClaims) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
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
			if c.gpuType == k && (c.fixed != nil || z.wanted <= 0) {
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
			if c.gpuType == k {
				needed += c.takes()
			}
		}
	}
	return needed
}

package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// quota is one quota of the snapshot, and the variants whose replicas use it.
type quota struct {
	*fleet.Quota
	isMaximum bool // of the configuration
	left      int  // amount that is not used
	users     []quotaUser
}

// quotaUser is a variant, the amount of a quota that one replica of it uses, and how many replicas
// are in the used part.
type quotaUser struct {
	*variant
	amount, counted int
}

// attachQuotas limits each variant by the quotas and maxima that it uses, as if no other did.
func (x *view) attachQuotas(rows []fleet.Quota, maxima []fleet.Limit) {
	byTarget := make(map[fleet.TargetID]*variant)
	if len(rows) > 0 {
		for v := range x.owners() {
			byTarget[v.target] = v
		}
	}
	for i := range rows {
		q := &quota{Quota: &rows[i], left: max(0, amount(rows[i].Hard)-amount(rows[i].Used))}
		for _, use := range rows[i].Uses {
			if v := byTarget[use.Target.Unversioned()]; v != nil && use.Amount > 0 {
				q.users = append(q.users, quotaUser{v, amount(use.Amount), v.countedBy(q)})
			}
		}
		if len(q.users) == 0 {
			continue
		}
		slices.SortFunc(q.users, quotaUser.compare)
		q.users = slices.CompactFunc(q.users, func(a, b quotaUser) bool { return a.variant == b.variant })
		x.quotas = append(x.quotas, q)
	}
	x.quotas = append(x.quotas, x.maxima(maxima)...)
	slices.SortFunc(x.quotas, func(a, b *quota) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.left, b.left), cmp.Compare(a.Hard, b.Hard), compareBool(a.Gates, b.Gates),
			cmp.Compare(a.Used, b.Used), slices.CompareFunc(a.users, b.users, quotaUser.compare))
	})
	for _, q := range x.quotas {
		for _, user := range q.users {
			user.limit(q, q.left/user.amount)
		}
	}
}

// compare orders the users of a quota, of several rows of one the largest amount first.
func (u quotaUser) compare(other quotaUser) int {
	return cmp.Or(u.ID.Compare(other.ID), cmp.Compare(other.amount, u.amount))
}

func amount(n int) int { return max(0, min(n, unlimited)) }

// limit limits a variant to its replicas that a quota counts already and so many others; the quota
// that leaves the fewest counts.
func (u quotaUser) limit(q *quota, others int) {
	if most := u.counted + others; u.quota == nil || most < u.mostByQuota {
		u.quota, u.mostByQuota = q, most
	}
}

// countedBy returns how many pods of the variant are in the used part of a quota.
func (v *variant) countedBy(q *quota) (counted int) {
	for i := range v.workload.Pods {
		if !q.Gates || v.workload.Pods[i].Waiting != gated {
			counted++
		}
	}
	return counted
}

// quotaNeed is the replicas that a variant needs of its quotas, and the most that it can use.
type quotaNeed struct {
	gpuClaim

	most int
}

// shareQuotas divides the rest of each quota among the variants that use it: first as many replicas
// as they need, by priority, and within one in equal parts; then the rest in equal parts. The quota
// with the least rest comes first: a part that it keeps from a variant is left to others in the
// next one.
func (r *round) shareQuotas() {
	shared := slices.DeleteFunc(slices.Clone(r.quotas), func(q *quota) bool { return len(q.users) < 2 })
	if len(shared) == 0 {
		return
	}
	slices.SortStableFunc(shared, func(a, b *quota) int { return cmp.Compare(a.left, b.left) })
	needs := make(map[*variant]quotaNeed, r.size)
	for _, z := range r.models {
		served := z.capacityOfAll(r.startable) >= z.latest*(1-tiny)
		for _, c := range z.candidates {
			useless := c.overdue + c.useless()
			need := quotaNeed{gpuClaim{model: z, best: c, needs: unlimited}, within(c.variant, c.bounds).Max}
			if served {
				need.needs = r.startable[c.option] + useless
			}
			if c.limited() {
				need.most = min(need.most, max(r.startable[c.option], c.mostPlaceable)+useless)
			}
			needs[c.variant] = need
		}
	}
	held := make(map[fleet.VariantID]int, len(r.decided))
	for _, d := range r.decided {
		held[d.Variant] = d.Replicas
	}
	for _, q := range shared {
		r.shareQuota(q, needs, held)
	}
	for _, z := range r.models {
		for i := range z.candidates {
			c := &z.candidates[i]
			c.bounds = r.bounds(z, c)
		}
	}
}

// shareQuota divides the rest of one quota. In that of a namespace, numbers that others set and
// that are kept come first. In a queue, a number that an object merely states takes nothing.
func (r *round) shareQuota(q *quota, needs map[*variant]quotaNeed, held map[fleet.VariantID]int) {
	var claims []gpuClaim
	users, left := make(map[*variant]quotaUser, len(q.users)), q.left
	for _, user := range q.users {
		need, decided := needs[user.variant]
		stays := held[user.ID]
		if decided {
			stays = user.setByOthers()
		}
		if stays > user.counted && !q.Gates {
			left = max(0, left-(stays-user.counted)*user.amount)
			user.counted = stays
		}
		if decided {
			claim := need.gpuClaim
			claim.takes, claim.needs = user.amount, max(0, min(claim.needs, need.usable())-user.counted)
			claims, users[user.variant] = append(claims, claim), user
		}
	}
	slices.SortStableFunc(claims, func(a, b gpuClaim) int { return cmp.Compare(b.model.priority, a.model.priority) })
	rest := left
	for more := claims; len(more) > 0; {
		same := more[:samePriority(more)]
		divide(same, rest)
		for _, claim := range same {
			rest -= claim.part * claim.takes
		}
		more = more[len(same):]
	}
	for i := range claims {
		own := claims[i].best.variant
		claims[i].kept, claims[i].needs = claims[i].part, max(claims[i].part, needs[own].usable()-users[own].counted)
	}
	divide(claims, left)
	for _, claim := range claims {
		c := claim.best
		if users[c.variant].limit(q, claim.part); c.quota == q {
			r.startable[c.option] = min(r.startable[c.option], max(0, c.mostInQuota()-c.overdue-c.useless()))
		}
	}
}

// usable is the most replicas that the variant can use, within the quotas that are divided already.
func (n quotaNeed) usable() int { return min(n.most, n.best.mostInQuota()) }

// setByOthers returns the number that KEDA keeps, whatever a quota leaves.
func (v *variant) setByOthers() int {
	switch {
	case v.fixed != nil && v.fixed.known:
		return v.fixed.replicas
	case v.Range.AllowsIdle || v.staysAtZero():
		return 0
	}
	return v.Range.Min
}

// mostInQuota is the most replicas that the quotas admit; those of the spec at least, since pods
// that are not seen yet may be counted.
func (v *variant) mostInQuota() int {
	if v.quota == nil {
		return unlimited
	}
	return max(v.now, min(unlimited, v.mostByQuota))
}

// waitsForQuota reports whether pods of the variant wait for a quota that is known, and for nothing
// else.
func (v *variant) waitsForQuota() bool {
	return v.notAdmitted > 0 && v.notAdmitted == v.withoutNode && v.quota != nil && v.quota.Gates
}

// quotaText returns the quota that limits a variant.
func (v *variant) quotaText() string {
	q := v.quota
	return fmt.Sprintf("%s: %d of %d %s used", q.Name, q.Used, q.Hard, q.Resource)
}

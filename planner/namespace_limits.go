package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// namespaceLimit is a maximum of accelerators of a namespace, and the part of it that is left.
type namespaceLimit struct {
	fleet.Limit
	used int // accelerators of existing replicas
	left int // accelerators that may be added; none if the used ones are not known
}

// String returns the use of the limit for people.
func (l *namespaceLimit) String() string {
	return fmt.Sprintf("maxAccelerators of the namespace: %d of %d %s used", l.used, max(0, l.Max), cmp.Or(string(l.Accelerator), "accelerators"))
}

// limitNamespaces counts the accelerators of the replicas in namespaces that have a maximum. The
// number of a replica is that of its object or of its pods, whichever is more, and a type that is
// not known counts as each.
func (x *view) limitNamespaces(rows []fleet.Limit) {
	if len(rows) == 0 {
		return
	}
	byNamespace := make(map[string][]*namespaceLimit)
	byType := func(a, b fleet.Limit) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Accelerator, b.Accelerator), cmp.Compare(a.Max, b.Max))
	}
	for _, row := range slices.SortedFunc(slices.Values(rows), byType) {
		limit := &namespaceLimit{Limit: row, left: max(0, min(row.Max, unlimited))}
		byNamespace[row.Namespace] = append(byNamespace[row.Namespace], limit)
	}
	for v := range x.owners() {
		for _, limit := range byNamespace[v.ID.Namespace] {
			if limit.Accelerator != "" && v.accelerator != "" && !v.accelerator.Is(string(limit.Accelerator)) {
				continue
			}
			v.limits = append(v.limits, limit)
			replicas, known := x.countedReplicas(v)
			if !known {
				limit.left = 0
			}
			v.counts = replicas
			limit.used = min(unlimited, limit.used+v.counts*v.counted())
			limit.left = max(0, min(limit.left, limit.Max-limit.used))
		}
	}
	for v := range x.owners() {
		v.grant = unlimited
		for _, limit := range v.limits {
			v.grant = min(v.grant, limit.left/v.counted())
		}
	}
}

// counted is how many accelerators a replica counts in the maximum of its namespace.
func (v *variant) counted() int {
	return min(mostGPUs, max(1, v.GPUsPerReplica, v.workload.GPUs))
}

// countedReplicas returns how many replicas count in the maximum: those of the spec, or the pods if
// they are more. Of a workload that cannot be read it is the previous decision; false if there is
// none.
func (x *view) countedReplicas(v *variant) (replicas int, known bool) {
	if v.seen || v.Hidden == "" {
		return max(v.now, min(mostReplicas, len(v.workload.Pods))), true
	}
	previous, known := x.previous[v.ID]
	return previous.Replicas, known
}

// mostInLimits is the most replicas that the maxima of the namespace allow; those of the spec at
// least.
func (v *variant) mostInLimits() int {
	if len(v.limits) == 0 {
		return unlimited
	}
	return max(v.now, min(unlimited, v.counts+v.grant))
}

// tightestLimit returns the maximum that leaves the fewest replicas.
func (v *variant) tightestLimit() *namespaceLimit {
	return slices.MinFunc(v.limits, func(a, b *namespaceLimit) int { return cmp.Compare(a.left, b.left) })
}

// divideLimits divides the accelerators that the maxima of namespaces leave, so that the variants
// of a namespace stay within them together: first for the replicas that the current demand needs,
// then for models that these do not serve, then for any. A higher priority comes first, and of
// equal ones each gets a replica in turn.
func (r *round) divideLimits() {
	byNamespace := make(map[string][]limitClaim)
	for _, z := range r.models {
		isServed := z.capacityOfAll(r.startable) >= z.latest*(1-tiny)
		for _, c := range z.candidates {
			if len(c.limits) > 0 {
				byNamespace[c.ID.Namespace] = append(byNamespace[c.ID.Namespace], limitClaim{c.variant, z.priority, r.startable[c.ID] + c.overdue + c.useless(), isServed})
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		claims := byNamespace[namespace]
		left := make(map[*namespaceLimit]int)
		for _, claim := range claims {
			claim.grant = 0
			for _, limit := range claim.limits {
				left[limit] = limit.left
			}
		}
		slices.SortStableFunc(claims, func(a, b limitClaim) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), a.ID.Compare(b.ID))
		})
		grantInTurn(claims, left, func(c limitClaim) int { return c.wants })
		grantInTurn(claims, left, func(c limitClaim) int {
			if c.isServed {
				return 0
			}
			return c.Range.Max
		})
		grantInTurn(claims, left, func(c limitClaim) int { return c.Range.Max })
	}
	for _, z := range r.models {
		for i := range z.candidates {
			if c := &z.candidates[i]; len(c.limits) > 0 {
				r.startable[c.ID] = min(r.startable[c.ID], c.mostInLimits())
				c.bounds = r.bounds(z, *c)
			}
		}
	}
}

// limitClaim is a variant that may get a part of the rest that the maxima of its namespace leave.
type limitClaim struct {
	*variant
	priority int
	wants    int // replicas that the current demand needs
	isServed bool
}

// grantInTurn grants replicas in turn, up to a number for each variant, while the maxima leave
// accelerators. The claims are sorted by priority: a lower one waits for the higher ones.
func grantInTurn(claims []limitClaim, left map[*namespaceLimit]int, most func(limitClaim) int) {
	for len(claims) > 0 {
		n := 1
		for n < len(claims) && claims[n].priority == claims[0].priority {
			n++
		}
		for granted := true; granted; {
			granted = false
			for _, c := range claims[:n] {
				granted = c.grantOne(left, most(c)) || granted
			}
		}
		claims = claims[n:]
	}
}

// grantOne grants a replica more, if the variant has fewer than most and all of its maxima leave
// the accelerators.
func (c limitClaim) grantOne(left map[*namespaceLimit]int, most int) bool {
	gpus := c.counted()
	if c.counts+c.grant >= most || slices.ContainsFunc(c.limits, func(l *namespaceLimit) bool { return left[l] < gpus }) {
		return false
	}
	c.grant++
	for _, limit := range c.limits {
		left[limit] -= gpus
	}
	return true
}

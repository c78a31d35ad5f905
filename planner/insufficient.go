package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// lacksAccelerators reports whether a variant needs another replica and accelerators for it are
// missing.
func (s explanation) lacksAccelerators(i int) bool {
	c, o := s.choices[i], s.outcomes[i]
	switch {
	case c.pinned != nil:
		return false
	case o.shortage, o.placeable < o.replicas:
		return true
	}
	return s.short > tiny && s.need.some && s.share(i) > 0 && o.limitedByAccelerators()
}

// limitedByAccelerators reports whether missing accelerators keep a variant from another replica.
func (o outcome) limitedByAccelerators() bool {
	switch {
	case o.shortage:
		return true
	case o.why == nil || o.placeable < o.solved:
		return false
	default:
		return o.why.Limit == solver.LimitNodes || o.why.Limit == solver.LimitPool
	}
}

// insufficient returns the reason of a variant that lacks accelerators.
func (s explanation) insufficient(i int) fleet.Reason {
	text, c, o := s.demandText(), s.choices[i], s.outcomes[i]
	if s.need.keepOne {
		text = "0 requests; the model keeps 1 replica"
	}
	if s.short > tiny && !s.need.keepOne {
		text += fmt.Sprintf(", %.0f%% unserved", 100*s.short)
	}
	switch existing := c.allocated(); {
	case o.replicas < existing:
		text += fmt.Sprintf(", %d of %d replicas preempted", existing-o.replicas, existing)
	case o.replicas < c.now:
		text += fmt.Sprintf(", %d of %d replicas cannot start", c.now-o.replicas, c.now)
	}
	why, full := reason(fleet.CodeInsufficientAccelerators, "%s", text), s.full()
	if len(full) > 0 && shortest(text+": "+full[0], "") != "" {
		why.Text, full = text+": "+full[0], full[1:]
	}
	return why.With(fleet.DetailLimit, strings.Join(full, ", ")).
		With(fleet.DetailCause, s.keepers()).
		With(fleet.DetailRemedy, "add nodes, add a variant on another accelerator type, or let a node autoscaler add nodes")
}

// full lists why each accelerator type keeps the model from more replicas, sorted.
func (s explanation) full() []string {
	var types []string
	for i, c := range s.choices {
		if k, limited := s.x.supply.of(c.variant); limited && s.outcomes[i].limitedByAccelerators() {
			types = append(types, k.full(c.variant))
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// keepers lists the variants whose minReplicaCount keeps the accelerators that the model lacks. A
// variant of another namespace is not named.
func (s explanation) keepers() string {
	var texts []string
	for i, c := range s.choices {
		k, limited := s.x.supply.of(c.variant)
		if !limited || !s.outcomes[i].limitedByAccelerators() || k.keeper == nil || k.keeper == c.variant {
			continue
		}
		name := "another variant"
		if k.keeper.ID.Namespace == c.ID.Namespace {
			name = k.keeper.ID.String()
		}
		texts = append(texts, fmt.Sprintf("%s keeps %d by its minReplicaCount", name, k.keeper.Range.Min))
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}

// full returns why a variant gets no further replica, in the words of the scheduler.
func (k *typeSupply) full(v *variant) string {
	gpus, shares := v.shape()
	nodes := 0
	for _, gpus := range k.allocatable { // a node that is not in the pool has none
		if gpus > 0 {
			nodes++
		}
	}
	switch total := k.total(); {
	case k.pool.Elastic:
		return fmt.Sprintf("limit of %d %s reached", total, k.pool.Accelerator)
	case nodes == 0:
		return fmt.Sprintf("0 nodes have %s", k.pool.Accelerator)
	case shares > 1:
		return fmt.Sprintf("a group of %d x %d %s does not fit on %d nodes", shares, gpus, k.pool.Accelerator, nodes)
	default:
		return fmt.Sprintf("0/%d nodes have %d free %s", nodes, gpus, k.pool.Accelerator)
	}
}

// details adds to a reason: the limits that keep the variant from another replica, and the next
// best mix with its price.
func (s explanation) details(i int, why fleet.Reason) fleet.Reason {
	c, o := s.choices[i], s.outcomes[i]
	var limits []string
	switch missing := s.need.blocked == fleet.CodeMetricsMissing; {
	case o.placeable < o.replicas && missing && c.Range.Clamp(o.placeable) < o.replicas:
		limits = append(limits, fmt.Sprintf("scale-down blocked (%s), so %d replicas are kept with accelerators for %d", s.need.why, o.replicas, o.placeable))
	case o.placeable < o.replicas:
		limits = append(limits, fmt.Sprintf("KEDA keeps %d replicas with accelerators for %d", o.replicas, o.placeable))
	}
	if c.pinned == nil && s.need.some {
		if why.Code != fleet.CodeInsufficientAccelerators && why.Code != fleet.CodeMaxReplicas && o.limitedByAccelerators() {
			limits = append(limits, o.limit(c.Accelerator))
		}
		if o.why != nil && o.placeable == o.solved {
			why = why.With(fleet.DetailAlternative, nextBest(o.why))
		}
	}
	if len(limits) == 0 {
		return why
	}
	if before := why.Detail(fleet.DetailLimit); before != "" {
		limits = append([]string{before}, limits...)
		why.Details = slices.DeleteFunc(slices.Clone(why.Details), func(d fleet.Detail) bool { return d.Name == fleet.DetailLimit })
	}
	return why.With(fleet.DetailLimit, strings.Join(limits, ", "))
}

// limit returns the limit that keeps a variant from another replica.
func (o outcome) limit(accelerator fleet.Accelerator) string {
	if o.why != nil && o.why.Limit == solver.LimitPool {
		return fmt.Sprintf("limit of %s reached", accelerator)
	}
	return fmt.Sprintf("no node has free %s for another replica", accelerator)
}

// nextBest returns the second best mix; "" if there is none.
func nextBest(why *solver.Reason) string {
	if len(why.RunnerUp) == 0 {
		return ""
	}
	mix := make([]string, len(why.RunnerUp))
	for i, count := range why.RunnerUp {
		mix[i] = fmt.Sprintf("%d x %s", count.Replicas, count.Variant.Name)
	}
	text := fmt.Sprintf("next best mix: %s at %+.2f an hour", strings.Join(mix, " and "), why.Extra)
	if why.Short > tiny {
		text += fmt.Sprintf(", %.0f%% unserved", 100*why.Short)
	}
	if why.Scarce {
		text += ", on contended accelerators"
	}
	return text
}

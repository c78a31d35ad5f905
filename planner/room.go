package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// lacksRoom reports whether a variant is to have another replica and there is no accelerator for it.
func (s story) lacksRoom(i int) bool {
	c, o := s.choices[i], s.outcomes[i]
	switch {
	case c.given != nil:
		return false
	case o.crowded, o.placed < o.replicas:
		return true
	}
	return s.short > tiny && s.need.some && s.share(i) > 0 && o.crowds()
}

// crowds reports whether accelerators are what keeps a variant from having another replica.
func (o outcome) crowds() bool {
	switch {
	case o.crowded:
		return true
	case o.why == nil || o.placed < o.solved:
		return false
	default:
		return o.why.Limit == solver.LimitNodes || o.why.Limit == solver.LimitPool || o.why.Limit == solver.LimitQuota
	}
}

// noRoom says what is asked and not carried, which accelerators are taken, and what would help.
func (s story) noRoom(i int) string {
	text, c, o := s.asked(), s.choices[i], s.outcomes[i]
	switch {
	case s.need.keepOne:
		text = "the model is to keep one replica"
	case s.need.probe != none:
		text += ", and nothing is known yet of what a replica carries"
	}
	if s.short > tiny && !s.need.keepOne {
		text += fmt.Sprintf(", of which %.0f%% are not carried", 100*s.short)
	}
	switch stands := c.stands(); {
	case o.replicas < stands:
		text += fmt.Sprintf("; %d of %d replicas are given up for others", stands-o.replicas, stands)
	case o.replicas < c.now:
		text += fmt.Sprintf("; no accelerator for %d of the %d replicas asked for", c.now-o.replicas, c.now)
	}
	if full := s.full(); full != "" {
		text += ": " + full
	}
	return text + "; add nodes, a variant on another kind, or let a node autoscaler add them"
}

// full says of each kind of accelerator that keeps the model from more replicas how it is taken; "" where none does.
func (s story) full() string {
	var kinds []string
	for i, c := range s.choices {
		if k, limited := s.x.stock.of(c.variant); limited && s.outcomes[i].crowds() {
			text := k.full(c.variant)
			if k.keeper != nil && k.keeper != c.variant {
				text += fmt.Sprintf(" (%s keeps %d by its minReplicaCount)", k.keeper.ID, k.keeper.Range.Min)
			}
			kinds = append(kinds, text)
		}
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), ", and ")
}

// full says how the kind is taken.
func (k *kindStock) full(v *variant) string {
	name, total := k.pool.Accelerator, k.total()
	gpus, shares := v.shape()
	switch left := total - k.used; {
	case k.pool.Elastic:
		return fmt.Sprintf("there may be %d %s and no more", total, name)
	case total == 0:
		return fmt.Sprintf("no %s is free for the fleet", name)
	case left <= 0 && total == 1:
		return fmt.Sprintf("the only %s that is free for the fleet is taken", name)
	case left <= 0:
		return fmt.Sprintf("all %d %s that are free for the fleet are taken", total, name)
	case shares > 1:
		return fmt.Sprintf("%d of %d %s are left, and nodes have no room for a group of %d times %d", left, total, name, shares, gpus)
	default:
		return fmt.Sprintf("%d of %d %s are left, and no node has room for %d together", left, total, name, gpus)
	}
}

// why says what else decided a number that is the solver's own: what keeps the variant from another replica, and what the next
// best mix would be; "" where there is nothing to say.
func (s story) why(i int, code fleet.Code) string {
	c, o := s.choices[i], s.outcomes[i]
	text := ""
	switch missing := s.need.freeze == fleet.CodeMetricsMissing; {
	case o.placed < o.replicas && missing && c.Range.Clamp(o.placed) < o.replicas:
		text = fmt.Sprintf("; nothing shrinks meanwhile (%s), so all %d stay, and there is room for %d", s.need.why, o.replicas, o.placed)
	case o.placed < o.replicas:
		text = fmt.Sprintf("; KEDA keeps %d all the same, and there is room for %d", o.replicas, o.placed)
	}
	if c.given != nil || !s.need.some {
		return text
	}
	if code != fleet.CodeInsufficientAccelerators && code != fleet.CodeMaxReplicas && o.crowds() {
		text += "; " + o.limit(c.Accelerator)
	}
	if o.why == nil || o.placed != o.solved {
		return text
	}
	return text + nextBest(o.why)
}

// limit says what keeps a variant from another replica.
func (o outcome) limit(kind fleet.Accelerator) string {
	switch {
	case o.why != nil && o.why.Limit == solver.LimitPool:
		return fmt.Sprintf("there may be no more %s", kind)
	case o.why != nil && o.why.Limit == solver.LimitQuota:
		return "the quota of its namespace is full"
	}
	return "no node has room for another"
}

// nextBest says what the next best mix would be; "" where there is none.
func nextBest(why *solver.Reason) string {
	if len(why.RunnerUp) == 0 {
		return ""
	}
	mix := make([]string, len(why.RunnerUp))
	for i, count := range why.RunnerUp {
		mix[i] = fmt.Sprintf("%d x %s", count.Replicas, count.Variant.Name)
	}
	text := fmt.Sprintf("; next best is %s at %+.2f an hour", strings.Join(mix, " and "), why.Extra)
	if why.Short > tiny {
		text += fmt.Sprintf(", which leaves %.0f%% unserved", 100*why.Short)
	}
	if why.Scarce {
		text += ", on accelerators that are scarce"
	}
	return text
}

package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// conflicts returns the contradictions in the fleet, sorted.
func (x *view) conflicts() []fleet.Conflict {
	found := slices.Clone(x.inconsistent)
	claims := make(map[fleet.VariantID][]fleet.VariantID, len(x.duplicates))
	for _, l := range x.duplicates {
		claims[l.owner] = append(claims[l.owner], l.variant.ID)
		found = append(found, ownConflicts(l.variant)...)
	}
	for v := range x.owners() {
		found = append(found, ownConflicts(v.Variant)...)
		found = append(found, v.targetConflicts(claims[v.ID])...)
	}
	for _, m := range x.models {
		if m.collision != nil {
			found = append(found, m.nameCollision())
		}
	}
	slices.SortFunc(found, fleet.Conflict.Compare)
	return found
}

// ownConflicts returns the conflicts that one object alone has.
func ownConflicts(v *fleet.Variant) (found []fleet.Conflict) {
	if v.Unsupported != (fleet.Problem{}) {
		found = append(found, fleet.Conflict{Type: fleet.ConflictUnsupportedTrigger, Variants: []fleet.VariantID{v.ID}, Text: v.Unsupported.String()})
	}
	if v.Triggers > 1 {
		found = append(found, fleet.Conflict{
			Type: fleet.ConflictMultipleTriggers, Variants: []fleet.VariantID{v.ID},
			Text: fmt.Sprintf("%d WVA triggers in one ScaledObject, so it is held; give each model a ScaledObject of its own", v.Triggers),
		})
	}
	return found
}

// targetConflicts returns the conflicts over a variant's target: duplicate claims and another HPA.
func (v *variant) targetConflicts(others []fleet.VariantID) (found []fleet.Conflict) {
	if len(others) == 0 && v.workload.ConflictingHPA == "" {
		return nil
	}
	all := slices.SortedFunc(slices.Values(append([]fleet.VariantID{v.ID}, others...)), fleet.VariantID.Compare)
	if len(others) > 0 {
		found = append(found, fleet.Conflict{
			Type: fleet.ConflictDuplicateTarget, Variants: all,
			Text: fmt.Sprintf("%d ScaledObjects scale %s; the number of the oldest, %s, is repeated for the others; delete those", len(all), v.Target, v.ID),
		})
	}
	if v.workload.ConflictingHPA != "" {
		found = append(found, fleet.Conflict{Type: fleet.ConflictConflictingHPA, Variants: all, Text: v.conflictingHPA().String()})
	}
	return found
}

// nameCollision returns the conflict of a model with an older model that has the same name in the
// engines' metrics.
func (m *model) nameCollision() fleet.Conflict {
	var all []fleet.VariantID
	for _, v := range slices.Concat(m.variants, m.collision.variants) {
		all = append(all, v.ID)
	}
	slices.SortFunc(all, fleet.VariantID.Compare)
	return fleet.Conflict{
		Type: fleet.ConflictInconsistentMetadata, Variants: all,
		Text: fmt.Sprintf("models %s and %s have the same name %s in the engines' metrics; the load counts for %s, and the other is held; "+
			"give each a servedModelName of its own", m.collision.id, m.id, m.sharedName, m.collision.id),
	}
}

// replicaType identifies variants of one model that must have the same price and the same latency
// objective.
type replicaType struct {
	accelerator fleet.Accelerator
	gpus        int
	class       string
}

// resolveMetadata gives variants of one replicaType the price and the latency objective of the
// oldest of them, of several the first by name. It returns a conflict for each variant with other
// values. Variants of an unknown accelerator type are not compared.
func (m *model) resolveMetadata() (conflicts []fleet.Conflict) {
	if len(m.variants) < 2 {
		return nil
	}
	older := func(a, b *variant) int { return cmp.Or(a.Created.Compare(b.Created), a.ID.Compare(b.ID)) }
	resolved := make(map[replicaType]*variant, len(m.variants))
	for _, v := range slices.SortedFunc(slices.Values(m.variants), older) {
		key := replicaType{v.accelerator, v.GPUsPerReplica, v.ServiceClass}
		first, found := resolved[key]
		switch {
		case v.accelerator == "":
		case !found:
			resolved[key] = v
		case v.Cost != first.Cost || v.Objective != first.Objective:
			conflicts = append(conflicts, contradiction(first, v))
			v.price, v.objective = first.Cost, first.Objective
		}
	}
	return conflicts
}

// contradiction returns the conflict of a variant with an older one of its replicaType. The text
// lists the values that differ.
func contradiction(first, v *variant) fleet.Conflict {
	var facts []string
	add := func(name string, said, resolved any) {
		if said != resolved {
			facts = append(facts, fmt.Sprintf("%s %v and %v", name, resolved, said))
		}
	}
	add("variantCost", v.Cost, first.Cost)
	add("ttft", v.Objective.TTFT, first.Objective.TTFT)
	add("itl", v.Objective.ITL, first.Objective.ITL)
	add("percentile", v.Objective.Percentile, first.Objective.Percentile)
	ids := []fleet.VariantID{first.ID, v.ID}
	slices.SortFunc(ids, fleet.VariantID.Compare)
	return fleet.Conflict{
		Type: fleet.ConflictInconsistentMetadata, Variants: ids,
		Text: fmt.Sprintf("%s and the newer %s serve %s on %s with different values: %s; the older one is used; make them the same, or give one accelerator a name of its own",
			first.ID, v.ID, v.Model, v.accelerator, strings.Join(facts, ", ")),
	}
}

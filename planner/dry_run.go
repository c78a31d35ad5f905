package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// splitDryRun returns one snapshot with the variants that are scaled and one with those in dry run.
// A dry run never changes the numbers of variants that are scaled.
func splitDryRun(s fleet.Snapshot) (scaled, dry fleet.Snapshot) {
	if !slices.ContainsFunc(s.Variants, isDryRun) {
		return s, fleet.Snapshot{}
	}
	scaled, dry = s, s
	scaled.Variants = slices.DeleteFunc(slices.Clone(s.Variants), isDryRun)
	dry.Variants = slices.DeleteFunc(slices.Clone(s.Variants), func(v fleet.Variant) bool { return !v.DryRun })
	return scaled, dry
}

func isDryRun(v fleet.Variant) bool { return v.DryRun }

// reserved lists targets, models and names in metrics of the variants that are scaled. Variants in
// dry run may not use them.
type reserved struct {
	targets map[fleet.TargetID]fleet.VariantID
	models  map[fleet.ModelID]fleet.VariantID
	names   map[modelKey]*model // in the engines' metrics
}

// reservedBy returns the reserved targets, models and names; of several owners the first by name.
func reservedBy(scaled []fleet.Variant, names map[modelKey]*model) *reserved {
	t := &reserved{targets: map[fleet.TargetID]fleet.VariantID{}, models: map[fleet.ModelID]fleet.VariantID{}, names: names}
	for _, v := range scaled {
		if first, found := t.models[v.Model]; !found || v.ID.Compare(first) < 0 {
			t.models[v.Model] = v.ID
		}
		if first, found := t.targets[v.Target.Unversioned()]; v.Target.Name != "" && (!found || v.ID.Compare(first) < 0) {
			t.targets[v.Target.Unversioned()] = v.ID
		}
	}
	return t
}

// excludes reports whether a variant is excluded from its model, and records the reason.
func (x *view) excludes(v *variant) bool {
	if x.reserved != nil {
		if owner, found := x.reserved.targets[v.target]; found {
			why := reason(fleet.CodeDuplicateTarget, "ScaledObject %s scales %s already", owner, v.Target).
				With(fleet.DetailRemedy, "remove the annotations")
			v.excluded = &why
			return true
		}
	}
	if problems := validationErrors(v.Variant); len(problems) > 0 {
		why := invalidDefinition(problems)
		v.excluded = &why
		return true
	}
	if x.reserved != nil {
		if other, found := x.reserved.models[v.Model]; found {
			why := reason(fleet.CodeModelAlreadyScaled, "ScaledObjects scale other variants of the model already, such as %s", other).
				With(fleet.DetailRemedy, "give this one a ScaledObject with a WVA trigger, so that all are decided together")
			v.excluded = &why
			return true
		}
	}
	return false
}

// addRecommendations adds the recommendations of the plan for the variants in dry run. It adds a
// conflict only if all of its variants are in dry run, so that no owner of a scaled variant is
// notified.
func addRecommendations(plan *fleet.Plan, other fleet.Plan) {
	own := make(map[fleet.VariantID]bool)
	for _, d := range other.Decisions {
		own[d.Variant] = true
	}
	plan.Recommendations = other.Decisions
	for _, c := range other.Conflicts {
		if !slices.ContainsFunc(c.Variants, func(id fleet.VariantID) bool { return !own[id] }) {
			plan.Conflicts = append(plan.Conflicts, c)
		}
	}
	slices.SortFunc(plan.Conflicts, fleet.Conflict.Compare)
	plan.Models = append(plan.Models, other.Models...)
	slices.SortFunc(plan.Models, func(a, b fleet.ModelPlan) int { return a.ID.Compare(b.ID) })
}

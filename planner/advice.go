package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// splitDryRun returns the snapshot of the variants that are scaled, and that of the advisory ones. What is declared for advice does
// not reach the numbers of the others in any way.
func splitDryRun(s fleet.Snapshot) (scaled, advisory fleet.Snapshot) {
	if !slices.ContainsFunc(s.Variants, isDryRun) {
		return s, fleet.Snapshot{}
	}
	scaled, advisory = s, s
	scaled.Variants = slices.DeleteFunc(slices.Clone(s.Variants), isDryRun)
	advisory.Variants = slices.DeleteFunc(slices.Clone(s.Variants), func(v fleet.Variant) bool { return !v.DryRun })
	return scaled, advisory
}

func isDryRun(v fleet.Variant) bool { return v.DryRun }

// reserved is what variants that are scaled have, so that advisory ones do not.
type reserved struct {
	targets map[targetKey]fleet.VariantID
	models  map[fleet.ModelID]fleet.VariantID
	names   map[modelKey]*model // in the engines' metrics
}

// reservedBy returns what the variants have that are scaled, of several the first by name.
func reservedBy(scaled []fleet.Variant, names map[modelKey]*model) *reserved {
	t := &reserved{targets: map[targetKey]fleet.VariantID{}, models: map[fleet.ModelID]fleet.VariantID{}, names: names}
	for _, v := range scaled {
		if first, found := t.models[v.Model]; !found || v.ID.Compare(first) < 0 {
			t.models[v.Model] = v.ID
		}
		if first, found := t.targets[keyOf(v.Target)]; v.Target.Name != "" && (!found || v.ID.Compare(first) < 0) {
			t.targets[keyOf(v.Target)] = v.ID
		}
	}
	return t
}

// excludes reports whether a variant takes no part in its model, and notes why.
func (x *index) excludes(v *variant) bool {
	if x.reserved != nil {
		if owner, found := x.reserved.targets[v.target]; found {
			why := reason(fleet.CodeDuplicateTarget, "ScaledObject %s scales %s already", owner, v.Target).
				With(fleet.DetailRemedy, "remove the annotations")
			v.excluded = &why
			return true
		}
	}
	if text := validationError(v.Variant); text != "" {
		why := factAndRemedy(fleet.CodeInvalidDefinition, text)
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

// addRecommendations adds to a plan what another one decides of advisory variants. Contradictions count where advisory ones alone are part
// of them: nobody else is to be told.
func addRecommendations(plan *fleet.Plan, advised fleet.Plan) {
	own := make(map[fleet.VariantID]bool)
	for _, d := range advised.Decisions {
		own[d.Variant] = true
	}
	plan.Recommendations = advised.Decisions
	for _, c := range advised.Conflicts {
		if !slices.ContainsFunc(c.Variants, func(id fleet.VariantID) bool { return !own[id] }) {
			plan.Conflicts = append(plan.Conflicts, c)
		}
	}
	slices.SortFunc(plan.Conflicts, fleet.Conflict.Compare)
	plan.Models = append(plan.Models, advised.Models...)
	slices.SortFunc(plan.Models, func(a, b fleet.ModelPlan) int { return a.ID.Compare(b.ID) })
}

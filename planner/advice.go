package planner

import (
	"slices"

	"github.com/wva-project/wva/fleet"
)

// apart returns the snapshot of the variants that are scaled, and that of the advisory ones. What is declared for advice does
// not reach the numbers of the others in any way.
func apart(s fleet.Snapshot) (scaled, advisory fleet.Snapshot) {
	if !slices.ContainsFunc(s.Variants, isAdvisory) {
		return s, fleet.Snapshot{}
	}
	scaled, advisory = s, s
	scaled.Variants = slices.DeleteFunc(slices.Clone(s.Variants), isAdvisory)
	advisory.Variants = slices.DeleteFunc(slices.Clone(s.Variants), func(v fleet.Variant) bool { return !v.DryRun })
	return scaled, advisory
}

func isAdvisory(v fleet.Variant) bool { return v.DryRun }

// taken is what variants that are scaled have, so that advisory ones do not.
type taken struct {
	targets map[targetKey]fleet.VariantID
	models  map[fleet.ModelID]fleet.VariantID
	names   map[modelKey]*model // in the engines' metrics
}

// takenBy returns what the variants have that are scaled, of several the first by name.
func takenBy(scaled []fleet.Variant, names map[modelKey]*model) *taken {
	t := &taken{targets: map[targetKey]fleet.VariantID{}, models: map[fleet.ModelID]fleet.VariantID{}, names: names}
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
	if x.taken != nil {
		if owner, found := x.taken.targets[v.target]; found {
			why := reason(fleet.CodeDuplicateTarget, "ScaledObject %s scales %s already", owner, v.Target).
				With(fleet.DetailRemedy, "remove the annotations")
			v.aside = &why
			return true
		}
	}
	if text := fault(v.Variant); text != "" {
		why := factAndRemedy(fleet.CodeInvalidDefinition, text)
		v.aside = &why
		return true
	}
	if x.taken != nil {
		if other, found := x.taken.models[v.Model]; found {
			why := reason(fleet.CodeModelAlreadyScaled, "ScaledObjects scale other variants of the model already, such as %s", other).
				With(fleet.DetailRemedy, "give this one a ScaledObject with a WVA trigger, so that all are decided together")
			v.aside = &why
			return true
		}
	}
	return false
}

// advise adds to a plan what another one decides of advisory variants. Contradictions count where advisory ones alone are part
// of them: nobody else is to be told.
func advise(plan *fleet.Plan, advised fleet.Plan) {
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

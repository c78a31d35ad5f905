package evaluation

import (
	"maps"
	"slices"
	"strconv"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// withObjective returns the objects with the limits that are not zero in the metadata of their
// triggers.
func withObjective(objects []scaledobject.Object, o fleet.Objective) []scaledobject.Object {
	changed := slices.Clone(objects)
	for i := range changed {
		changed[i].Spec.Triggers = slices.Clone(changed[i].Spec.Triggers)
		for j := range changed[i].Spec.Triggers {
			trigger := &changed[i].Spec.Triggers[j]
			trigger.Metadata = maps.Clone(trigger.Metadata)
			setObjective(trigger.Metadata, o)
		}
	}
	return changed
}

func setObjective(metadata map[string]string, o fleet.Objective) {
	if o.TTFT > 0 {
		metadata["ttft"] = o.TTFT.String()
	}
	if o.ITL > 0 {
		metadata["itl"] = o.ITL.String()
	}
	if o.Percentile > 0 {
		metadata["percentile"] = strconv.FormatFloat(o.Percentile, 'g', -1, 64)
	}
}

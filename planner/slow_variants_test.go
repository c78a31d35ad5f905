package planner

import (
	"testing"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// Two fast replicas serve 0.4 of the demand. Slow ones, which attract more requests than they can
// serve within the objective, take the rest only if no further fast ones may be started.
func TestSlowVariantsServeIfTheOthersCannot(t *testing.T) {
	for most, used := range map[int]bool{2: true, 4: true, 5: false, 9: false} {
		fast := candidate{variant: &variant{Variant: &fleet.Variant{Range: fleet.Range{Max: most}}, mostPlaceable: 100}, share: 0.2}
		slow := candidate{
			variant: &variant{Variant: &fleet.Variant{Range: fleet.Range{Max: 64}}, mostPlaceable: 100}, share: 0.01, alone: 0.05,
			capacity: analyzer.Capacity{Share: fleet.Observed(0.01), Alone: fleet.Observed(0.05), NoMore: true},
		}
		z := &sizedModel{candidates: []candidate{fast, slow}, latest: 1}
		z.useSlowVariants()
		if got := z.candidates[1]; (got.share == 0.05) != used || got.capacity.NoMore == used {
			t.Errorf("at most %d fast ones: share %v, no more %v", most, got.share, got.capacity.NoMore)
		}
		if z.candidates[0].share != 0.2 {
			t.Errorf("the share of the fast one is %v", z.candidates[0].share)
		}
	}
}

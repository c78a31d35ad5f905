package planner

import (
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// A variant that another rule limits is not at its maximum.
func TestVariantsBelowTheirMaximumAreNotCalledFull(t *testing.T) {
	for replicas, want := range map[int]string{64: ", and so are all variants", 0: ", and no other variant may have more"} {
		e := explanation{
			sizedModel: &sizedModel{candidates: []candidate{
				{variant: &variant{Variant: &fleet.Variant{Range: fleet.Range{Max: 2}}}},
				{variant: &variant{Variant: &fleet.Variant{Range: fleet.Range{Max: 64}}}},
			}},
			outcomes: []outcome{{replicas: 2}, {replicas: replicas}}, asked: "56 req/s", short: 0.48,
		}
		if text := e.maxReplicas(0, fleet.CodeMaxReplicas).Text; !strings.HasSuffix(text, "at maxReplicaCount 2"+want) {
			t.Errorf("%d replicas of the other: %q", replicas, text)
		}
	}
}

package evaluation_test

import (
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
)

// Outputs of 8,000 tokens take minutes, so that few requests begin in a full batch. Six H100 are
// enough; all 128 replicas were started before decision 44.
func TestLongOutputsWithoutAProfileStartNoReplicasWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("7 s without the race detector: shorter loads run the same goroutines")
	}
	t.Parallel()
	c := newCase(t, "chat", "long-outputs:minutes=15", evaluation.SetupOptions{WarmUp: 10 * time.Minute})
	got := mustRun(t, c, "wva-without-profiles", evaluation.Setting{})
	if got.PeakReplicas > 50 || got.AverageReplicas > 40 || got.Attainment < 0.8 {
		t.Errorf("%d replicas at most, %.1f on average, attainment %.3f", got.PeakReplicas, got.AverageReplicas, got.Attainment)
	}
}

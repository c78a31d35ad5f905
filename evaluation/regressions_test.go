package evaluation_test

import (
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
)

// Small replicas that started one after the other were kept without end before decision 48: an A100
// and ten L40S instead of two H100.
func TestARisingLoadDoesNotGatherSmallReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("5 s without the race detector: shorter loads run the same goroutines")
	}
	t.Parallel()
	c := newCase(t, "qwen-three", "ramp:minutes=60,low=1,high=15", evaluation.SetupOptions{WarmUp: 10 * time.Minute})
	got := mustRun(t, c, "wva", evaluation.Setting{})
	if got.PeakReplicas > 9 || got.Attainment < 0.95 {
		t.Errorf("%d replicas at most, %.2f an hour, attainment %.3f", got.PeakReplicas, got.CostPerHour, got.Attainment)
	}
}

// Two L40S serve one output of 8,000 tokens every ten seconds. An H100 stayed beside them without
// end before decision 47, since so few requests did not correct the profile of the L40S.
func TestFewLongRequestsKeepNoReplicaThatIsNotNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 177 s under the race detector")
	}
	t.Parallel()
	c := newCase(t, "chat", "long-outputs:minutes=10,rate=0.1", evaluation.SetupOptions{WarmUp: 15 * time.Minute})
	got := mustRun(t, c, "wva", evaluation.Setting{})
	if got.CostPerHour > 3 || got.Attainment < 0.95 {
		t.Errorf("%.2f an hour, attainment %.3f, want two L40S for 2.20", got.CostPerHour, got.Attainment)
	}
}

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

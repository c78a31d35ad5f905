package evaluation_test

import (
	"testing"
	"time"

	"github.com/wva-project/wva/evaluation"
)

// Two L40S serve one output of 8,000 tokens every ten seconds. An H100 stayed beside them without
// end before decision 47, since so few requests did not correct the profile of the L40S.
func TestFewLongRequestsKeepNoReplicaThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	c := newCase(t, "chat", "long-outputs:minutes=10,rate=0.1", evaluation.SetupOptions{WarmUp: 15 * time.Minute})
	got := mustRun(t, c, "wva", evaluation.Setting{})
	if got.CostPerHour > 3 || got.Attainment < 0.95 {
		t.Errorf("%.2f an hour, attainment %.3f, want two L40S for 2.20", got.CostPerHour, got.Attainment)
	}
}

package collector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// presence returns how long the series of a gateway for the model cover the past without a gap, and
// whether there is a row for them at all.
func (w *world) presence(model string) (covered time.Duration, found bool) {
	w.Helper()
	for _, load := range w.collect().Loads {
		if load.Source == fleet.SourceGateway && load.Model == model {
			covered, found = max(covered, load.IdleCovered), true
		}
	}
	return covered, found
}

// TestWakeSignalIsASeriesOfTheModelThroughoutTheRetention covers the condition of a model that may
// go to zero, and of one that is there: a gateway had a series of it all the time.
func TestWakeSignalIsASeriesOfTheModelThroughoutTheRetention(t *testing.T) {
	const last, retention = 1800, 10 * time.Minute
	requests, queue := "inference_objective_request_total", "llm_d_epp_flow_control_queue_size"
	errors := "inference_objective_request_error_total"
	for name, c := range map[string]struct {
		metric, model string
		from, until   int
		hole          int // the second at which eight scrapes fail; 0: none do
		covered       time.Duration
		found         bool
	}{
		"a counter throughout":      {requests, llama, 0, last, 0, retention, true},
		"a queue throughout":        {queue, llama, 0, last, 0, retention, true},
		"a counter for half of it":  {requests, llama, last - 300, last, 0, 5 * time.Minute, true},
		"a queue for half of it":    {queue, llama, last - 300, last, 0, 5 * time.Minute, true},
		"a counter that went":       {requests, llama, 0, last - 300, 0, 0, true},
		"a hole two minutes ago":    {requests, llama, 0, last, last - 240, 2 * time.Minute, true},
		"nothing for an hour":       {requests, llama, -7200, -3600, 0, 0, false},
		"a counter of another":      {requests, "other", 0, last, 0, 0, false},
		"a queue of another":        {queue, "other", 0, last, 0, 0, false},
		"a counter of errors alone": {errors, llama, 0, last, 0, 0, false},
	} {
		for state, exposes := range map[string]bool{"runs": true, "is scaled to zero": false} {
			t.Run(name+", the model "+state, func(t *testing.T) {
				w := newWorld(t)
				for second := min(0, c.from); second <= last; second += interval {
					if second >= 0 && exposes {
						w.scrape("pod-a", second, idle("pod-a")(second)...)
					}
					var samples []promstore.Sample
					if inHole := c.hole > 0 && second > c.hole && second <= c.hole+120; second >= c.from && second <= c.until && !inHole {
						samples = append(samples, gatewayRequests(c.metric, "epp-0", "chat", c.model, 0))
					}
					w.scrape("epp", second, samples...)
				}
				covered, found := w.presence(llama)
				require.Equal(t, c.found, found)
				require.InDelta(t, c.covered, covered, float64(15*time.Second))
			})
		}
	}
}

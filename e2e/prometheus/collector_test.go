package prometheus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/fleet"
)

// TestMixAndArrivalsOnARealPrometheus asks for the readings that the analyzers need beside demand:
// major versions of Prometheus differ in the bounds of buckets and the ends of ranges.
func TestMixAndArrivalsOnARealPrometheus(t *testing.T) {
	binary(t)
	t.Parallel()
	engines := startEngines(t, vllm(), func([]fleet.Workload) {})
	engines.ask(modelOf(chat), high/5)
	scraper := startScraper(t, engines)
	asking, err := collector.New(collector.Options{
		Address: scraper.at.Load().String(), Interval: interval, Lag: lag, Timeout: interval - time.Millisecond,
		Window: 8 * time.Second, PeakWindow: 15 * time.Second,
		IdleWindow: 30 * time.Second, LongWindow: time.Minute,
	})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		observation := asking.Collect(t.Context(), time.Now(), collector.Windows{})
		require.Empty(c, observation.Missing)
		for _, source := range []fleet.LoadSource{fleet.SourceEngine, fleet.SourceGateway} {
			dispersion, known := loadOf(c, observation, source).Dispersion.Known()
			require.True(c, known, source)
			require.Less(c, dispersion, 0.5, "requests come evenly")
		}
		load := loadOf(c, observation, fleet.SourceEngine)
		requireAllIn(c, load.PromptLengths, 1000)
		requireAllIn(c, load.OutputLengths, 200)
		require.Equal(c, fleet.Observed(0), load.PrefixHits)
		usage := observation.Usages[0]
		require.Equal(c, modelOf(chat).Name, usage.Model)
		require.Greater(c, usage.MeanRunning.Or(0), 0.5)
		require.Greater(c, usage.Progress.Or(0), 100.0, "tokens a second")
		require.InDelta(c, 0.07, usage.MeanPrefill.Or(0), 0.05)
	}, deadline, interval)
}

func loadOf(t require.TestingT, o collector.Observation, source fleet.LoadSource) fleet.Load {
	for _, load := range o.Loads {
		if load.Source == source && load.Model == modelOf(chat).Name {
			return load
		}
	}
	require.Fail(t, "no load", source)
	return fleet.Load{}
}

// requireAllIn asserts that all lengths of a histogram are in one bucket, among others.
func requireAllIn(t require.TestingT, lengths []fleet.Bucket, upper float64) {
	require.Len(t, lengths, 17)
	for _, b := range lengths {
		require.Equal(t, b.Upper == upper, b.Count > 0, "%v", lengths)
	}
}

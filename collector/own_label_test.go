package collector_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/engine/exposition"
	"github.com/wva-project/wva/fleet"
)

// triton is the series of a pod of Triton after so many seconds, two requests each.
func triton(t *testing.T, pod string, second int) []promstore.Sample {
	t.Helper()
	return scrapePage(t, pod, goldenPage(t, "triton-tensorrt-llm", second), scrapers[0].accept, exposition.PlainText)
}

func tritonWorld(t *testing.T, change ...func(*collector.Options)) *world {
	t.Helper()
	w := newWorld(t, change...)
	w.scrapes("pod-a", 0, 900, func(second int) []promstore.Sample { return triton(t, "pod-a", second) })
	return w
}

func TestModelsAroundABackendAreNotRead(t *testing.T) {
	observation := tritonWorld(t).collect()
	require.Len(t, observation.Usages, 1)
	require.Len(t, observation.Loads, 1)
	require.Equal(t, llama, observation.Usages[0].Model)
}

func TestModelLabelThatIsSetIsThatOfEveryEngine(t *testing.T) {
	w := tritonWorld(t, func(o *collector.Options) { o.ModelLabel = "model" })
	require.Equal(t, tritonWorld(t).collect(), w.collect())
}

// TestSeriesWithBothModelLabelsFailNoQuery: two series that differ in the label of the setting only
// would become the same.
func TestSeriesWithBothModelLabelsFailNoQuery(t *testing.T) {
	w := tritonWorld(t)
	alone := w.collect()
	w.scrapes("hostile", 0, 900, func(second int) []promstore.Sample {
		var samples []promstore.Sample
		for _, sample := range triton(t, "hostile", second) {
			for _, name := range []string{"one", "another"} {
				samples = append(samples, promstore.Sample{Name: sample.Name, Labels: with(sample.Labels, "model_name", name), Value: sample.Value})
			}
		}
		return samples
	})
	require.Equal(t, alone, w.collect(), "neither failed nor counted")
}

func TestEnginesWithTheirOwnModelLabelAddUpToOneModel(t *testing.T) {
	w := tritonWorld(t)
	w.scrapes("pod-b", 0, 900, steady("pod-b", 2))
	load := w.load(fleet.SourceEngine)
	require.Equal(t, llama, load.Model)
	present(t, 4, load.PeakArrivals)
	present(t, 11, load.PeakInFlight)
}

func TestProductWithoutItsFactorIsUnknown(t *testing.T) {
	for _, missing := range []string{"max", "tokens_per"} {
		w := newWorld(t)
		w.scrapes("pod-a", 0, 600, func(second int) []promstore.Sample {
			return slices.DeleteFunc(triton(t, "pod-a", second), func(s promstore.Sample) bool {
				return slices.ContainsFunc(s.Labels, func(l promstore.Label) bool { return l.Value == missing && strings.HasPrefix(l.Name, "kv_") })
			})
		})
		usage := w.usage("pod-a")
		require.Equal(t, fleet.Reading{}, usage.KVTokens, "without %s", missing)
		present(t, 0.25, usage.KV)
	}
}

// TestProductOutlastsAMissedScrape: the sizes of the scrape before count.
func TestProductOutlastsAMissedScrape(t *testing.T) {
	w := tritonWorld(t)
	w.scrape("pod-a", 915)
	present(t, 432000, w.usage("pod-a").KVTokens)
}

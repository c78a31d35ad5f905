package collector_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/fleet"
)

// missingAfter returns the rows of a cycle in which one query is answered with the additional text.
func missingAfter(t *testing.T, mark, additional string) []fleet.Missing {
	t.Helper()
	c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
		body := nothing(text)
		if strings.Contains(text, "%22"+mark+"%22") {
			body = strings.Replace(body, `{"status"`, `{`+additional+`,"status"`, 1)
		}
		return respond(http.StatusOK, body)
	}))
	first := c.Collect(t.Context(), at(600), collector.Windows{}).Missing
	require.Equal(t, first, c.Collect(t.Context(), at(600), collector.Windows{}).Missing, "answered from memory")
	return first
}

func TestPartialAnswerHidesItsSource(t *testing.T) {
	for name, additional := range map[string]string{
		"Thanos":               `"warnings":["receive series from Addr: store-7: context deadline exceeded"]`,
		"VictoriaMetrics":      `"isPartial":true`,
		"with spaces":          "\"isPartial\" :\n\ttrue",
		"of two marks":         `"isPartial":false,"isPartial":true`,
		"beside an annotation": `"warnings":["PromQL info: metric might not be a counter","store 7 is away"]`,
		"omitted warnings":     `"warnings":["2 more warning annotations omitted"]`,
	} {
		t.Run(name, func(t *testing.T) {
			for mark, hides := range map[string]fleet.LoadSource{"running": fleet.SourceEngine, "idle_known": fleet.SourceEngine, "gateway_idle_known": fleet.SourceGateway} {
				rows := missingAfter(t, mark, additional)
				require.Len(t, rows, 1)
				require.Equal(t, hides, rows[0].Hides)
				require.Contains(t, rows[0].Reason, "the answer is partial")
			}
		})
	}
}

func TestCompleteAnswerHidesNothing(t *testing.T) {
	for _, additional := range []string{
		`"isPartial":false`, `"isPartial" : false`, `"infos":["\"isPartial\":true"]`, `"labels":{"isPartial":"true"}`,
		`"infos":["PromQL info: metric might not be a counter"]`, `"warnings":["PromQL info: metric might not be a counter"]`, `"warnings":[]`,
	} {
		require.Empty(t, missingAfter(t, "running", additional), additional)
	}
}

// TestAnnotationsOfPromQLAreNoWarnings compares the table with Prometheus' own annotations.
func TestAnnotationsOfPromQLAreNoWarnings(t *testing.T) {
	for _, annotation := range []error{
		annotations.InvalidRatioWarning, annotations.InvalidQuantileWarning, annotations.BadBucketLabelWarning, annotations.MixedFloatsHistogramsWarning,
		annotations.MixedClassicNativeHistogramsWarning, annotations.NativeHistogramNotCounterWarning, annotations.IncompatibleBucketLayoutInBinOpWarning,
		annotations.PossibleNonCounterInfo, annotations.HistogramQuantileForcedMonotonicityInfo, annotations.HistogramIgnoredInAggregationInfo,
	} {
		require.Empty(t, missingAfter(t, "running", fmt.Sprintf(`"warnings":[%q]`, annotation)))
	}
}

// TestImpossibleMomentsProveNoIdleTime has answers that contradict themselves: a model that was
// last used in 1970 was used at no time within the window.
func TestImpossibleMomentsProveNoIdleTime(t *testing.T) {
	idleWith := func(values ...string) fleet.Load {
		c := newCollector(t, transport(func(_ *http.Request, text string) (*http.Response, error) {
			if !strings.Contains(text, "%22idle_known%22") || strings.Contains(text, "%22gateway_idle_known%22") {
				return respond(http.StatusOK, nothing(text))
			}
			var rows []string
			for i, part := range []string{"idle_known", "idle_gap", "last_active"} {
				if values[i] != "" {
					rows = append(rows, fmt.Sprintf(`{"metric":{"namespace":%q,"model_name":%q,"wva_part":%q},"value":[0,%q]}`, team, llama, part, values[i]))
				}
			}
			return respond(http.StatusOK, fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(rows, ",")))
		}), func(o *collector.Options) { o.Lag = -1 })
		return loadOf(t, c.Collect(t.Context(), at(600), collector.Windows{}), fleet.SourceEngine)
	}
	second := func(s int) string { return fmt.Sprint(at(s).Unix()) }
	require.Positive(t, idleWith("1", "", "").IdleCovered)
	require.Positive(t, idleWith("1", "", second(300)).IdleCovered)
	require.Positive(t, idleWith("1", second(100), second(300)).IdleCovered)
	for _, values := range [][]string{
		{"0", "", ""}, {"NaN", "", ""}, {"1", "", "0"}, {"1", "", "NaN"}, {"1", "0", ""}, {"1", "NaN", ""}, {"1", "", second(900)}, {"1", "+Inf", ""},
	} {
		load := idleWith(values...)
		require.Zero(t, load.IdleCovered, "%q", values)
	}
}

func TestSGLangWithoutRequestsHasAPeakOfZero(t *testing.T) {
	w := newWorld(t)
	for second := 0; second <= 900; second += interval {
		w.scrape("pod-a", second, sglang("pod-a", report{})...)
	}
	present(t, 0, w.load(fleet.SourceEngine).PeakArrivals)
}

func TestSilentPodHasARowForTenMinutes(t *testing.T) {
	w := newWorld(t)
	w.scrapes("pod-a", 0, 1500, steady("pod-a", 2))
	w.scrapes("pod-b", 0, 600, steady("pod-b", 2))
	w.scrape("pod-b", 615)
	for second, rows := range map[int]int{600: 1, 900: 1, 1185: 1, 1230: 0} {
		observation := w.collector.Collect(t.Context(), at(second), collector.Windows{})
		found := usagesOf(observation, "pod-b")
		require.Len(t, found, rows, "after %d seconds", second)
		if rows == 1 && second > 615 {
			require.Equal(t, fleet.Absent, found[0].Running.State)
		}
	}
}

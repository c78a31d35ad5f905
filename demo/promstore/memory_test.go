package promstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo/promstore"
)

// value returns the value of the only sample of a query's result.
func value(t *testing.T, store *promstore.Store, expression string, second int) float64 {
	t.Helper()
	vector, err := store.Query(t.Context(), expression, at(second))
	require.NoError(t, err)
	require.Len(t, vector, 1, expression)
	return vector[0].F
}

func TestKnownResultsOfPromQL(t *testing.T) {
	store := open(t)
	// A counter with 2 per second that restarts at 150 s, a gauge 0, 1, 2, 1, 0, ..., and a
	// histogram with 1, 3 and 4 of 4 requests within 1, 2 and any number of seconds.
	for step := range 21 {
		second := 15 * step
		total := float64(2 * second)
		if second >= 150 {
			total = float64(2 * (second - 150))
		}
		samples := []promstore.Sample{
			{Name: "total", Labels: promstore.Labels("pod", "a"), Value: total},
			{Name: "level", Labels: promstore.Labels("pod", "a"), Value: math.Abs(float64(step%4 - 2))},
		}
		for le, share := range map[string]float64{"1": 1, "2": 3, "+Inf": 4} {
			samples = append(samples, promstore.Sample{Name: "wait_bucket", Labels: promstore.Labels("le", le), Value: share * float64(step)})
		}
		require.NoError(t, store.Scrape("a", at(second), samples))
	}
	for expression, want := range map[string]float64{
		// Samples at 15, ..., 120 s span 105 of 110 s, and are extrapolated to both ends.
		`rate(total[110s]  @ 1767225720)`:  2, // at 120 s
		`increase(total[1m] @ 1767225720)`: 120,
		`resets(total[5m])`:                1,
		// 300 - 30, and 270 again for the restart, over 285 of 299 s.
		`increase(total[299s])`:                                             540. / 285 * 299,
		`max_over_time(level[1m])`:                                          2,
		`min_over_time(level[1m])`:                                          0,
		`count_over_time(level[1m])`:                                        4,
		`sum_over_time(level[2m] offset 1m)`:                                8,
		`max_over_time(sum(rate(total[1m]))[3m:15s])`:                       2,
		`histogram_quantile(0.5, wait_bucket)`:                              1.5,
		`histogram_quantile(0.25, sum by (le) (rate(wait_bucket[2m])))`:     1,
		`histogram_quantile(0.9, wait_bucket)`:                              2,
		`count({__name__=~"total|level"})`:                                  2,
		`count({__name__=~".+", le!=""})`:                                   3,
		`count({pod="a"})`:                                                  2,
		`sum(total{pod=~"a|b"}) / on () group_left () sum(level{pod!~"b"})`: 150,
	} {
		t.Run(expression, func(t *testing.T) {
			require.InDelta(t, want, value(t, store, expression, 300), 1e-9)
		})
	}
}

// naive is a series as a test would write it down: all samples in a list.
type naive struct {
	times  []int // seconds
	values []float64
}

// within returns the values in the seconds (from, until], without staleness markers.
func (n naive) within(from, until int) (values []float64) {
	for i, second := range n.times {
		if second > from && second <= until && !math.IsNaN(n.values[i]) {
			values = append(values, n.values[i])
		}
	}
	return values
}

// current returns the newest value of the last five minutes, unless it is a staleness marker.
func (n naive) current(second int) (float64, bool) {
	for i, at := range slices.Backward(n.times) {
		if at <= second {
			return n.values[i], at > second-300 && !math.IsNaN(n.values[i])
		}
	}
	return 0, false
}

// TestStoreAgreesWithANaiveOne scrapes random series, of which some vanish and return, and compares
// answers with a search through all samples.
func TestStoreAgreesWithANaiveOne(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	store := open(t)
	all := map[string]*naive{}
	const pods, end = 12, 3000
	for second := 0; second <= end; second += 15 {
		var samples []promstore.Sample
		for p := range pods {
			pod := fmt.Sprint("pod-", p)
			series := all[pod]
			if series == nil {
				series = &naive{}
				all[pod] = series
			}
			last := len(series.values) - 1
			if phase := (second/15 + 7*p) % 40; phase < 25+p {
				x := math.Round(100 * draw.Float64())
				samples = append(samples, gauge(pod, x))
				series.times, series.values = append(series.times, second), append(series.values, x)
			} else if last >= 0 && !math.IsNaN(series.values[last]) {
				series.times, series.values = append(series.times, second), append(series.values, math.NaN())
			}
		}
		require.NoError(t, store.Scrape("all", at(second), samples))
	}
	compared := 0
	for range 200 {
		second, window := draw.IntN(end+400), 1+draw.IntN(900)
		want := map[string]float64{}
		sum := func(values []float64) (total float64) {
			for _, x := range values {
				total += x
			}
			return total
		}
		for expression, of := range map[string]func(naive) (float64, bool){
			"load": func(n naive) (float64, bool) { return n.current(second) },
			fmt.Sprintf("sum_over_time(load[%ds])", window): func(n naive) (float64, bool) {
				values := n.within(second-window, second)
				return sum(values), len(values) > 0
			},
			fmt.Sprintf("max_over_time(load[%ds])", window): func(n naive) (float64, bool) {
				values := n.within(second-window, second)
				slices.Sort(values)
				return append([]float64{0}, values...)[len(values)], len(values) > 0
			},
		} {
			clear(want)
			for pod, series := range all {
				if x, found := of(*series); found {
					want[pod] = x
				}
			}
			vector, err := store.Query(t.Context(), expression, at(second))
			require.NoError(t, err)
			got := map[string]float64{}
			for _, sample := range vector {
				got[sample.Metric.Get("pod")] = sample.F
			}
			require.Equal(t, want, got, "%s at %d s", expression, second)
			compared += len(got)
		}
	}
	require.Greater(t, compared, 1000)
}

func TestSamplesAreDroppedAfterTwoDays(t *testing.T) {
	store := open(t)
	const hour = 3600
	for second := 0; second <= 60*hour; second += hour {
		samples := []promstore.Sample{gauge("stays", 1)}
		if second < 6*hour {
			samples = append(samples, gauge("ends", 1))
		}
		require.NoError(t, store.Append(at(second), samples))
	}
	require.InDelta(t, 49, value(t, store, "count_over_time(load[70h])", 60*hour), 0, "of one series")
	require.ErrorContains(t, store.Append(at(hour), []promstore.Sample{gauge("late", 1)}), "appending a sample of load: out of bounds")
}

func TestTheSameSampleAgainIsNoError(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1), gauge("a", 2)}), "the first counts")
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1)}))
	require.ErrorContains(t, store.Append(at(0), []promstore.Sample{gauge("a", 2)}), "duplicate")
	require.InDelta(t, 1, value(t, store, "load", 0), 0)
	require.InDelta(t, 1, value(t, store, "count_over_time(load[1m])", 0), 0)
}

func TestAQuerySeesWholeScrapesOnly(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("a", 1)}))
	querier, err := store.Querier(at(0).UnixMilli(), at(60).UnixMilli())
	require.NoError(t, err)
	appended := make(chan error)
	go func() { appended <- store.Append(at(1), []promstore.Sample{gauge("a", 2), gauge("b", 2)}) }()
	select {
	case err := <-appended:
		require.NoError(t, err)
		require.Fail(t, "samples were appended during a query")
	case <-time.After(20 * time.Millisecond):
	}
	name := labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "load")
	set := querier.Select(t.Context(), true, nil, name)
	require.True(t, set.Next())
	require.False(t, set.Next())
	require.NoError(t, querier.Close())
	require.NoError(t, <-appended)
	require.InDelta(t, 2, value(t, store, "count(load)", 1), 0)
}

func TestSeriesAreSortedOnDemand(t *testing.T) {
	store := open(t)
	require.NoError(t, store.Append(at(0), []promstore.Sample{gauge("c", 1), gauge("a", 2), gauge("b", 3)}))
	querier, err := store.Querier(at(0).UnixMilli(), at(0).UnixMilli())
	require.NoError(t, err)
	defer func() { require.NoError(t, querier.Close()) }()
	for sorted, want := range map[bool]string{false: "cab", true: "abc"} {
		got := ""
		set := querier.Select(t.Context(), sorted, nil, labels.MustNewMatcher(labels.MatchRegexp, "pod", "[abc]"))
		for set.Next() {
			got += set.At().Labels().Get("pod")
		}
		require.Equal(t, want, got)
	}
}

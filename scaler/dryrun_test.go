package scaler

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func recommended(name string, replicas, current int) fleet.Decision {
	d := decided(name, replicas)
	d.Facts.Current, d.Facts.CurrentKnown, d.Facts.Cost = current, true, 2
	return d
}

func TestRecommendationsAreListedAndNeverAnswered(t *testing.T) {
	w := newWorld(t)
	plan := planAt(start, decided("b", 1))
	plan.Recommendations = []fleet.Decision{recommended("a", 3, 5)}
	w.board.Post(plan)
	answer, err := w.operators().ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, answer.GetVariants(), 2)
	first, second := answer.GetVariants()[0], answer.GetVariants()[1]
	require.Equal(t, "a", first.GetName())
	require.True(t, first.GetDryRun())
	require.EqualValues(t, 3, first.GetDesiredReplicas())
	require.False(t, second.GetDryRun())
	_, err = w.keda().GetMetrics(t.Context(), metricsRequest("a"))
	require.ErrorContains(t, err, "not decided yet")
	require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(""), "wva_recommended_changes_total"))
}

func TestSavingsOfRecommendationsAreCounted(t *testing.T) {
	m := newDryRunMetrics()
	plan := func(after time.Duration, recommendations ...fleet.Decision) fleet.Plan {
		return fleet.Plan{Time: start.Add(after), Recommendations: recommendations}
	}
	first := plan(0, recommended("a", 3, 5), recommended("b", 4, 3), recommended("gone", 1, 9))
	second := plan(30*time.Minute, recommended("a", 2, 5), recommended("b", 6, 3))
	m.count(fleet.Plan{}, first, time.Hour)
	m.count(first, second, time.Hour)
	m.count(second, first, time.Hour) // a clock that was set back counts nothing
	value := func(counter *prometheus.CounterVec, i int, direction string) float64 {
		a := first.Recommendations[i]
		return testutil.ToFloat64(counter.WithLabelValues(a.Variant.Namespace, a.Facts.Model.Name, direction))
	}
	require.InDelta(t, 2, value(m.cost, 0, "saved"), 1e-9, "two replicas less at 2 for half an hour")
	require.InDelta(t, 1, value(m.cost, 1, "added"), 1e-9)
	require.InDelta(t, 1, value(m.changes, 0, "down"), 0)
	require.InDelta(t, 1, value(m.changes, 1, "up"), 0)
}

func TestRemovedRecommendationsLeaveNoSeriesAndAGapIsNotCounted(t *testing.T) {
	m := newDryRunMetrics()
	first := fleet.Plan{Time: start, Recommendations: []fleet.Decision{recommended("a", 3, 5)}}
	m.count(first, fleet.Plan{Time: start.Add(10 * time.Hour), Recommendations: first.Recommendations}, 5*time.Minute)
	require.InDelta(t, 4.0/12, testutil.ToFloat64(m.cost), 1e-9, "no cycle ended for ten hours, of which five minutes count")
	m.count(first, fleet.Plan{Time: start.Add(time.Minute)}, 5*time.Minute)
	require.Zero(t, testutil.CollectAndCount(m.cost))
}

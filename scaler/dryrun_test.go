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

func advised(name string, replicas, current int) fleet.Advice {
	d := target(name, replicas)
	d.Facts.Current, d.Facts.CurrentKnown, d.Facts.Cost = current, true, 2
	return fleet.Advise(fleet.Decision{Variant: d.Variant, Replicas: replicas, Known: true, Reason: d.Reason, Facts: d.Facts})
}

func TestAdviceIsListedAndNeverAnswered(t *testing.T) {
	w := newWorld(t)
	plan := planAt(start, target("b", 1))
	plan.Advice = []fleet.Advice{advised("a", 3, 5)}
	w.board.Post(plan)
	answer, err := wvav1alpha1.NewOperatorServiceClient(w.connect(nil)).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, answer.GetVariants(), 2)
	first, second := answer.GetVariants()[0], answer.GetVariants()[1]
	require.Equal(t, "a", first.GetName())
	require.True(t, first.GetAdvisory())
	require.EqualValues(t, 3, first.GetDesiredReplicas())
	require.False(t, second.GetAdvisory())
	_, err = w.keda().GetMetrics(t.Context(), metricsRequest("a"))
	require.ErrorContains(t, err, "not decided yet")
	require.NoError(t, testutil.GatherAndCompare(w.registry, strings.NewReader(""), "wva_advised_changes_total"))
}

func TestWhatAdviceWouldHaveSavedIsCounted(t *testing.T) {
	m := newAdviceMetrics()
	plan := func(after time.Duration, advice ...fleet.Advice) fleet.Plan {
		return fleet.Plan{Time: start.Add(after), Advice: advice}
	}
	first := plan(0, advised("a", 3, 5), advised("b", 4, 3), advised("gone", 1, 9))
	second := plan(30*time.Minute, advised("a", 2, 5), advised("b", 6, 3))
	m.count(fleet.Plan{}, first, time.Hour)
	m.count(first, second, time.Hour)
	m.count(second, first, time.Hour) // a clock that was set back counts nothing
	value := func(counter *prometheus.CounterVec, i int, direction string) float64 {
		a := first.Advice[i]
		return testutil.ToFloat64(counter.WithLabelValues(a.Variant.Namespace, a.Facts.Model.Name, direction))
	}
	require.InDelta(t, 2, value(m.cost, 0, "saved"), 1e-9, "two replicas less at 2 for half an hour")
	require.InDelta(t, 1, value(m.cost, 1, "added"), 1e-9)
	require.InDelta(t, 1, value(m.changes, 0, "down"), 0)
	require.InDelta(t, 1, value(m.changes, 1, "up"), 0)
}

func TestAdviceThatIsGoneLeavesNoSeriesAndAGapIsNotCounted(t *testing.T) {
	m := newAdviceMetrics()
	first := fleet.Plan{Time: start, Advice: []fleet.Advice{advised("a", 3, 5)}}
	m.count(first, fleet.Plan{Time: start.Add(10 * time.Hour), Advice: first.Advice}, 5*time.Minute)
	require.InDelta(t, 4.0/12, testutil.ToFloat64(m.cost), 1e-9, "no cycle ended for ten hours, of which five minutes count")
	m.count(first, fleet.Plan{Time: start.Add(time.Minute)}, 5*time.Minute)
	require.Zero(t, testutil.CollectAndCount(m.cost))
}

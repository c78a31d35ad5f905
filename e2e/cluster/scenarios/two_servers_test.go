package scenarios

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// answers are the numbers of a server for one variant, by the interval of the plan. A plan that a
// change triggers replaces the one before in its interval. Plans that lack metrics are left out: on
// a busy machine, Prometheus answers one of two servers and not the other.
type answers map[int64]int32

// add takes over the current plan.
func (a answers) add(s *server, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	plan, err := s.operators.ListVariants(ctx, &wvav1alpha1.ListVariantsRequest{Namespace: s.namespace})
	if err != nil {
		return
	}
	for _, v := range plan.GetVariants() {
		answered := isDecided(v) && v.GetReason() != "MetricsMissing"
		if v.GetName() == name && v.DesiredReplicas != nil && answered {
			a[plan.GetPlanTime().AsTime().Add(-queryOffset).UnixNano()/int64(interval)] = v.GetDesiredReplicas()
		}
	}
}

func twoServersAgreeForMinutes(t *testing.T, w *world) {
	const while, phase = 2 * time.Minute, 20 * time.Second
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20, startup: "2s"}
	first := w.atLoad(v)
	second := w.startAt(freePort(t))
	second.awaitReady()
	loads := []float64{busy, 12, 3, 20, 1, 6}
	ones, twos := answers{}, answers{}
	for began := time.Now(); time.Since(began) < while; time.Sleep(tick) {
		w.player.ask(v.model, loads[int(time.Since(began)/phase)%len(loads)])
		ones.add(first, v.name)
		twos.add(second, v.name)
	}
	compared, differ, longest := 0, 0, 0
	for _, at := range slices.Sorted(maps.Keys(ones)) {
		other, both := twos[at]
		switch {
		case !both:
		case other == ones[at]:
			compared, differ = compared+1, 0
		default:
			compared, differ = compared+1, differ+1
			longest = max(longest, differ)
			t.Logf("interval %d: %d and %d", at, ones[at], other)
		}
	}
	t.Logf("%d and %d intervals, %d of them compared", len(ones), len(twos), compared)
	require.Greater(t, compared, 30, "they plan at the same times, and have metrics")
	// One of them may have seen a pod earlier, or may have been triggered in another interval.
	require.LessOrEqual(t, longest, 2, "the same inputs make the same plan")
}

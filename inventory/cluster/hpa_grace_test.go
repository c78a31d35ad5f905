package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// state returns the HPA's state of the only variant.
func (w *world) state() fleet.Autoscaler {
	require.Len(w, w.Tables().Variants, 1)
	return w.Tables().Variants[0].Autoscaler
}

func TestHPAThatIsMissingIsReportedAfterTheGrace(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		w.api.remove("horizontalpodautoscalers.autoscaling llm/keda-hpa-chat")
		w.pass(autoscalerGrace - time.Second)
		require.Zero(t, w.state(), "KEDA may be about to make it anew")
		w.causes()
		w.pass(5 * time.Second)
		require.Equal(t, fleet.CodeHPAMissing, w.state().Code)
		require.Equal(t, "watch", w.causes(), "nothing else changed")
		w.api.apply(manifesttest.KEDAHPA("chat", ""))
		w.settle()
		require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		w.api.remove("horizontalpodautoscalers.autoscaling llm/keda-hpa-chat")
		w.settle()
		require.Zero(t, w.state(), "the grace begins again")
	})
}

func TestObjectWithoutAnHPAIsReportedByItsAge(t *testing.T) {
	for _, test := range []struct {
		created string
		want    fleet.Code
	}{{"1999-12-31T23:00:00Z", fleet.CodeHPAMissing}, {"1999-12-31T23:59:00Z", ""}, {"2000-01-01T00:01:00Z", ""}} {
		t.Run(test.created, func(t *testing.T) {
			object := strings.Replace(manifesttest.Scaled("a"), "2026-01-01T00:00:00Z", test.created, 1)
			inCluster(t, Options{}, []string{object, manifesttest.Deployment("a", 1, "image: x")}, func(w *world) {
				require.Equal(t, test.want, w.state().Code)
				w.pass(autoscalerGrace)
				require.Equal(t, fleet.CodeHPAMissing, w.state().Code)
			})
		})
	}
}

func TestHPAThatIsInactiveForAMomentIsNotReported(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		for range 3 {
			w.api.apply(manifesttest.KEDAHPA("chat", manifesttest.FailingMetric))
			w.pass(time.Minute)
			require.Zero(t, w.state())
			w.api.apply(manifesttest.KEDAHPA("chat", ""))
			w.pass(time.Minute)
			require.Equal(t, fleet.Autoscaler{Observed: true}, w.state())
		}
	})
}

func TestTextOfAnInactiveHPAStaysWhileItsCauseDoes(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.api.apply(manifesttest.KEDAHPA("chat", manifesttest.FailingMetric))
		w.pass(3 * time.Minute)
		first := w.state()
		require.Contains(t, first.Text, "connection refused")
		w.causes()
		w.api.apply(manifesttest.KEDAHPA("chat", strings.Replace(manifesttest.FailingMetric, "connection refused", "timeout", 1)))
		w.settle()
		require.Equal(t, first, w.state())
		require.Empty(t, w.causes())
		w.api.apply(manifesttest.KEDAHPA("chat", manifesttest.AmbiguousSelector))
		w.settle()
		require.Equal(t, fleet.CodeAmbiguousSelector, w.state().Code, "another cause, and the number was not followed before")
	})
}

func TestStatusOfAnHPAThatScalesIsNoChange(t *testing.T) {
	inCluster(t, Options{}, chat(2), func(w *world) {
		w.causes()
		w.api.apply(manifesttest.KEDAHPA("chat", `, {type: ScalingLimited, status: "True", message: "a"}`), manifesttest.KEDAHPA("chat", `, {type: ScalingLimited, status: "False", message: "b"}`))
		w.settle()
		require.Empty(t, w.causes())
	})
}

func TestHPAsThatMayNotBeReadAreNotObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.api.deny("list horizontalpodautoscalers.autoscaling", 403)
		w.api.deny("watch horizontalpodautoscalers.autoscaling", 403)
		w.api.apply(chat(2)...)
		w.run()
		w.pass(time.Hour)
		require.Zero(t, w.state())
	})
}

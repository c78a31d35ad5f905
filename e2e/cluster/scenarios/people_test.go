package scenarios

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func eventsAreWrittenOnceByTheReplicaThatLeads(t *testing.T, w *world) {
	first := w.start()
	first.awaitReady()
	second := w.startAt(freePort(t))
	second.awaitReady()
	v := chat
	object := v.scaledObject(w.address)
	object.Object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metricType"] = "Value"
	w.deploy(v)
	w.create(object)
	stored, err := w.objects.Get(t.Context(), v.name, metav1.GetOptions{})
	require.NoError(t, err)

	told := func() (events []corev1.Event) {
		all, err := w.Client.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, event := range all.Items {
			if event.InvolvedObject.Kind == "ScaledObject" && event.Source.Component == "wva" {
				events = append(events, event)
			}
		}
		return events
	}
	eventually(t, patience, "the unsupported trigger is told", func() bool { return len(told()) > 0 })
	second.await(v.name, "is held by the second too", func(v *wvav1alpha1.Variant) bool { return v.GetReason() == "UnsupportedTrigger" })
	cycles := second.metric("wva_cycles_total")
	eventually(t, patience, "the second has had the time to tell it too", func() bool { return second.metric("wva_cycles_total") > cycles+2 })
	require.InDelta(t, 1, first.metric("wva_events_written_total")+second.metric("wva_events_written_total"), 0)
	events := told()
	require.Len(t, events, 1)
	require.Equal(t, corev1.EventTypeWarning, events[0].Type)
	require.Equal(t, "UnsupportedTrigger", events[0].Reason)
	require.Contains(t, events[0].Message, "metricType")
	require.Equal(t, stored.GetUID(), events[0].InvolvedObject.UID)
	require.EqualValues(t, 1, events[0].Count)
}

func annotatedDeploymentGetsARecommendationAndKEDAGetsNothing(t *testing.T, w *world) {
	s := w.start()
	s.awaitReady()
	live := chat.deployment()
	live.Annotations = map[string]string{
		"wva.dev/modelID": chat.model, "wva.dev/accelerator": "L40S", "wva.dev/variantCost": "2", "wva.dev/maxReplicaCount": "8",
	}
	_, err := w.Client.AppsV1().Deployments(w.namespace).Create(t.Context(), live, metav1.CreateOptions{})
	require.NoError(t, err)
	s.await(chat.name, "has a recommendation", func(v *wvav1alpha1.Variant) bool { return v.GetDryRun() && v.GetCurrentReplicas() == 3 })
	_, err = s.desired(chat.name)
	require.ErrorContains(t, err, "not decided yet")
	require.Equal(t, 3, w.replicas(chat.name))
	require.NotContains(t, s.whole(), `"msg":"target changed"`)
}

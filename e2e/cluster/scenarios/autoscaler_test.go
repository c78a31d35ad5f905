package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// grace is longer than the two minutes after which a number that no HPA follows is reported.
const grace = 2*time.Minute + deadline

// autoscalerActive returns the status and the reason of the condition AutoscalerActive.
func autoscalerActive(v *wvav1alpha1.Variant) (status, reason string) {
	for _, c := range v.GetConditions() {
		if c.GetType() == "AutoscalerActive" {
			return c.GetStatus(), c.GetReason()
		}
	}
	return "", ""
}

func numberThatNoHPAFollowsIsACondition(t *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, replicas: 1, min: 1, max: 10}
	w.player.ask(v.model, 1)
	s := w.start()
	s.awaitReady()
	w.declare(v)
	eventually(t, deadline, "the HPA is active", func() bool {
		status, _ := autoscalerActive(s.variants()[v.name])
		return status == "True"
	})

	// The pods of chat match the selector of another HPA's target too.
	other := spec{name: "other", model: "org/other", replicas: 1}.deployment()
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"engine": "played"}}
	_, err := w.Client.AppsV1().Deployments(w.namespace).Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)
	hpas := w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	_, err = hpas.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: other.Name, Namespace: w.namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: other.Name}, MaxReplicas: 2,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, grace, "the ambiguous selector is a condition", func() bool {
		status, reason := autoscalerActive(s.variants()[v.name])
		return status == "False" && reason == "AmbiguousSelector"
	})
	eventually(t, patience, "an event tells it", func() bool {
		events, err := w.Client.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, event := range events.Items {
			if event.InvolvedObject.Kind == "ScaledObject" && event.Reason == "AmbiguousSelector" {
				require.Equal(t, corev1.EventTypeWarning, event.Type)
				require.Contains(t, event.Message, "controlled by multiple HPAs: keda-hpa-chat, other); give the pods")
				return true
			}
		}
		return false
	})

	require.NoError(t, hpas.Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
	eventually(t, deadline, "the HPA is active again", func() bool {
		status, _ := autoscalerActive(s.variants()[v.name])
		return status == "True"
	})
}

func secondHPAOfATargetHoldsItsNumber(t *testing.T, w *world) {
	v := spec{name: "chat", model: "org/chat", accelerator: "L40S", cost: 2, min: 1, max: 20}
	s := w.atLoad(v)
	seen := w.follow(deployments, v.name)
	hpas := w.Client.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	_, err := hpas.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: v.name}, MaxReplicas: 20,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.await(v.name, "is held", func(v *wvav1alpha1.Variant) bool { return v.GetHeld() && v.GetReason() == "ConflictingHPA" })
	eventually(t, patience, "an event tells it", func() bool {
		event := w.event(v.name, "ConflictingHPA")
		return event != nil && event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "by-hand")
	})
	w.player.ask(v.model, 2*busy)
	w.answersAtLeast(s, v.name, busyReplicas, outage)
	require.Equal(t, busyReplicas, seen.low())
	require.Equal(t, busyReplicas, seen.high(), "Kubernetes follows neither of two HPAs")

	require.NoError(t, hpas.Delete(t.Context(), "by-hand", metav1.DeleteOptions{}))
	eventually(t, deadline, "the number rises with the load, and is followed", func() bool { return w.replicas(v.name) > busyReplicas })
}
